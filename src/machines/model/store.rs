//! The file of models: versioned JSON. One ships with the program.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::network::{HIDDEN, LATENT, Network, PARAMETERS, WINDOW};
use crate::machines::error::MachinesError;

const SHIPPED: &str = include_str!("default.json");
/// Version of the file's form.
pub const VERSION: u32 = 1;
/// The network that serves metrics without one of their own.
pub const ANY: &str = "any";

/// Networks by metric, and the order in which metrics are asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Samples of a window, hidden size, number of latent variables.
    pub sizes: [usize; 3],
    /// How the networks came about, for people.
    pub made: String,
    /// Metrics by how well they tell faults, the best first; others follow by name.
    pub order: Vec<String>,
    /// A network a metric, and [`ANY`].
    pub networks: BTreeMap<String, Stored>,
}

/// A stored network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// Mean squared error on windows kept apart.
    pub error: f64,
    /// Passes of the training.
    pub epochs: usize,
    /// Parameters in the order of `network.rs`.
    pub parameters: Vec<f32>,
}

impl Models {
    /// The models that ship with the program.
    ///
    /// # Errors
    /// A broken build: the tests read the file.
    pub fn shipped() -> Result<Self, MachinesError> {
        Self::parse(SHIPPED).map_err(|reason| MachinesError::content(Path::new("the shipped models"), reason))
    }

    /// Reads a file of models.
    ///
    /// # Errors
    /// A file that can't be read, is of another version or has networks of another size.
    pub fn load(path: &Path) -> Result<Self, MachinesError> {
        let text = std::fs::read_to_string(path).map_err(MachinesError::read(path))?;
        Self::parse(&text).map_err(|reason| MachinesError::content(path, reason))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let models: Self = serde_json::from_str(text).map_err(|error| format!("no file of models: {error}"))?;
        if models.version != VERSION {
            return Err(format!(
                "version {}, this program reads {VERSION}; train anew",
                models.version
            ));
        }
        if models.sizes != Self::SIZES {
            return Err(format!(
                "networks of sizes {:?}, not {:?}; train anew",
                models.sizes,
                Self::SIZES
            ));
        }
        for (name, stored) in &models.networks {
            let count = stored.parameters.len();
            if count != PARAMETERS || stored.parameters.iter().any(|value| !value.is_finite()) {
                return Err(format!(
                    "the network of `{name}` has not {PARAMETERS} finite parameters"
                ));
            }
        }
        Ok(models)
    }

    /// Sizes of this build's networks.
    pub const SIZES: [usize; 3] = [WINDOW, HIDDEN, LATENT];

    /// The network of a metric, or that for any.
    #[must_use]
    pub fn network(&self, metric: &str) -> Option<Network<f32>> {
        let stored = self.networks.get(metric).or_else(|| self.networks.get(ANY))?;
        Some(Network {
            parameters: stored.parameters.clone(),
        })
    }

    /// Writes the models.
    ///
    /// # Errors
    /// A file that can't be written.
    pub fn save(&self, path: &Path) -> Result<(), MachinesError> {
        let text = serde_json::to_string(self).map_err(|error| MachinesError::write(path, error))?;
        std::fs::write(path, text + "\n").map_err(|error| MachinesError::write(path, error))
    }
}

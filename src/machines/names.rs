//! Names of metrics: what exporters call them, with units and limits (`names.toml`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::error::MachinesError;

const BUILT_IN: &str = include_str!("names.toml");

/// The table of known metrics.
#[derive(Debug, Clone)]
pub struct Names {
    known: BTreeMap<String, Known>,
    alias_of: BTreeMap<String, String>,
}

/// What is known of a metric.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Unit of the values after scaling.
    #[serde(default)]
    pub unit: String,
    /// Smallest and largest possible value.
    #[serde(default)]
    pub limits: Option<[f32; 2]>,
    /// Exporters' names.
    #[serde(default)]
    aliases: Vec<String>,
    /// Names whose values only grow.
    #[serde(default)]
    counters: Vec<String>,
    /// Factors to the unit, by name.
    #[serde(default)]
    scales: BTreeMap<String, f32>,
}

/// A metric as a file names it, looked up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mapped<'a> {
    /// Name in reports.
    pub name: &'a str,
    /// Whether the value only grows, so that its rate is what counts.
    pub counter: bool,
    /// Factor to the unit.
    pub scale: f32,
}

impl Names {
    /// The built-in table, with the entries of a file over it.
    ///
    /// # Errors
    /// A file that can't be read or has an unknown key.
    pub fn load(more: Option<&Path>) -> Result<Self, MachinesError> {
        let mut names = Self::built_in();
        if let Some(path) = more {
            let text = std::fs::read_to_string(path).map_err(MachinesError::read(path))?;
            let table = parse(&text).map_err(|reason| MachinesError::content(path, reason))?;
            names.add(table);
        }
        Ok(names)
    }

    /// The table that ships with the program.
    #[must_use]
    pub fn built_in() -> Self {
        let mut names = Self {
            known: BTreeMap::new(),
            alias_of: BTreeMap::new(),
        };
        // A test reads the shipped table; a broken one would only leave names as the files have them.
        names.add(parse(BUILT_IN).unwrap_or_default());
        names
    }

    fn add(&mut self, table: BTreeMap<String, Known>) {
        for (name, known) in table {
            for alias in &known.aliases {
                self.alias_of.insert(alias.clone(), name.clone());
            }
            self.known.insert(name, known);
        }
    }

    /// Looks a name of a file up; unknown names stand for themselves.
    #[must_use]
    pub fn canonical<'a>(&'a self, name: &'a str) -> Mapped<'a> {
        let canonical = self.alias_of.get(name).map_or(name, String::as_str);
        let known = self.known.get(canonical);
        Mapped {
            name: canonical,
            counter: known.is_some_and(|known| known.counters.iter().any(|counter| counter == name)),
            scale: known.and_then(|known| known.scales.get(name)).copied().unwrap_or(1.0),
        }
    }

    /// What is known of a canonical name.
    #[must_use]
    pub fn known(&self, name: &str) -> Option<&Known> {
        self.known.get(name)
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, Known>, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_sound() {
        let table = parse(BUILT_IN).expect("names.toml");
        assert_eq!(table.len(), 21);
        let names = Names::built_in();
        assert_eq!(names.canonical("DCGM_FI_DEV_POWER_USAGE").name, "gpu_power_draw");
        let counter = names.canonical("node_ethtool_tx_prio3_pause");
        assert!(counter.counter);
        assert_eq!(counter.name, "pfc_tx_packet_rate");
        assert_eq!(
            names.canonical("my_metric"),
            Mapped {
                name: "my_metric",
                counter: false,
                scale: 1.0
            }
        );
    }
}

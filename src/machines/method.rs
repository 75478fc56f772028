//! How machines are compared, and from which score on one is named.

use std::fmt;

use super::score::tails::normal_score;

/// How machines are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Levels over minutes of the windows' reconstructions.
    LstmVae,
    /// Levels over minutes of the windows' means.
    Raw,
    /// Minder's letter: a candidate a window by Euclidean distances of reconstructions, kept for minutes.
    Minder,
    /// The same on the samples instead of reconstructions.
    MinderRaw,
    /// The same with Manhattan distances.
    Manhattan,
    /// The same with Chebyshev distances.
    Chebyshev,
    /// Minder without continuity: one window names.
    NoContinuity,
    /// Minder with moments and the Mahalanobis distance.
    Mahalanobis,
}

impl Method {
    /// All of them, the default first.
    pub const ALL: [Self; 8] = [
        Self::LstmVae,
        Self::Raw,
        Self::Minder,
        Self::MinderRaw,
        Self::Manhattan,
        Self::Chebyshev,
        Self::NoContinuity,
        Self::Mahalanobis,
    ];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LstmVae => "lstm-vae",
            Self::Raw => "raw",
            Self::Minder => "minder",
            Self::MinderRaw => "minder-raw",
            Self::Manhattan => "manhattan",
            Self::Chebyshev => "chebyshev",
            Self::NoContinuity => "no-continuity",
            Self::Mahalanobis => "mahalanobis",
        }
    }

    /// What it does, in a line of help.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::LstmVae => "Levels over minutes of the denoised windows",
            Self::Raw => "Levels over minutes of the samples",
            Self::Minder => "Minder's letter: the same candidate window by window",
            Self::MinderRaw => "Minder on samples instead of reconstructions",
            Self::Manhattan => "Minder with Manhattan distances",
            Self::Chebyshev => "Minder with Chebyshev distances",
            Self::NoContinuity => "Minder without continuity",
            Self::Mahalanobis => "Minder on moments, with the Mahalanobis distance",
        }
    }

    /// The method of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether scores are levels, whose null distribution is known.
    #[must_use]
    pub fn is_levels(self) -> bool {
        matches!(self, Self::LstmVae | Self::Raw)
    }

    /// Smallest score that names a machine in a task of so many machines and metrics.
    ///
    /// Levels: the score that chance gives to any machine in any metric with probability `false_alarms` at most. The
    /// others have no known distribution: their thresholds are first guesses that nothing tuned, so they are there to compare with.
    #[must_use]
    pub fn threshold(self, machines: usize, metrics: usize, false_alarms: f64) -> f64 {
        match self {
            Self::LstmVae | Self::Raw => normal_score(false_alarms / (machines * metrics).max(1) as f64),
            Self::Minder | Self::MinderRaw | Self::Manhattan | Self::Chebyshev => 2.0,
            Self::NoContinuity => 20.0,
            Self::Mahalanobis => 2.0,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! What can be wrong with a simulated job, and the text forms the command line takes.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ranks whose times are multiplied, written `R:FACTOR`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankFactor {
    /// Global rank, 0-based.
    pub rank: usize,
    /// Multiplier of the healthy time, at least 1.
    pub factor: f64,
}

/// All ranks of a node, written `K:FACTOR`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NodeFactor {
    /// Node number, 0-based; node K holds ranks `K * ranks_per_node ..`.
    pub node: usize,
    /// Multiplier of the healthy time, at least 1.
    pub factor: f64,
}

/// A pipeline stage with more work than the others, written `S:FACTOR`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageFactor {
    /// Pipeline stage, 0-based.
    pub stage: usize,
    /// Multiplier of the stage's work.
    pub factor: f64,
}

/// The link between two pipeline neighbours, written `A-B:FACTOR`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkFactor {
    /// One end (global rank).
    pub a: usize,
    /// The other end (global rank), on the stage before or after.
    pub b: usize,
    /// Multiplier of the transfer time, at least 1.
    pub factor: f64,
}

/// A data loader that takes longer, written `R:SECONDS`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankSeconds {
    /// Global rank; it must be one that loads data.
    pub rank: usize,
    /// Seconds added to every microbatch.
    pub seconds: f64,
}

/// A rank slow for a few steps only, written `R:FACTOR@ITER+COUNT`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Transient {
    /// Global rank.
    pub rank: usize,
    /// Multiplier of the compute time, at least 1.
    pub factor: f64,
    /// First slow iteration.
    pub from: u32,
    /// Number of slow iterations.
    pub count: u32,
}

/// One step that is longer on all ranks, written `ITER:SECONDS`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// The iteration.
    pub iteration: u32,
    /// Seconds added to its `interval-time`.
    pub seconds: f64,
}

/// A restart from a checkpoint, written `ITER` or `ITER:R:FACTOR`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rerun {
    /// First iteration that ran twice.
    pub from: u32,
    /// The compute fault of the lost part; it replaces the job's own faults there.
    pub lost: Option<RankFactor>,
}

fn number<T: FromStr>(text: &str, what: &str, form: &str) -> Result<T, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("`{text}` is no {what}; expected {form}"))
}

fn halves<'a>(text: &'a str, separator: char, form: &str) -> Result<(&'a str, &'a str), String> {
    text.split_once(separator)
        .ok_or_else(|| format!("no `{separator}`; expected {form}"))
}

macro_rules! pair_from_str {
    ($type:ident, $key:ident, $value:ident, $form:literal) => {
        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let (key, value) = halves(text, ':', $form)?;
                Ok(Self {
                    $key: number(key, stringify!($key), $form)?,
                    $value: number(value, stringify!($value), $form)?,
                })
            }
        }
    };
}

pair_from_str!(RankFactor, rank, factor, "R:FACTOR, e.g. 13:1.35");
pair_from_str!(NodeFactor, node, factor, "K:FACTOR, e.g. 1:1.35");
pair_from_str!(StageFactor, stage, factor, "S:FACTOR, e.g. 3:1.6");
pair_from_str!(RankSeconds, rank, seconds, "R:SECONDS, e.g. 3:0.1");
pair_from_str!(Stall, iteration, seconds, "ITER:SECONDS, e.g. 22:60");

impl FromStr for LinkFactor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "A-B:FACTOR, e.g. 3-11:10";
        let (ends, factor) = halves(text, ':', FORM)?;
        let (a, b) = halves(ends, '-', FORM)?;
        Ok(Self {
            a: number(a, "rank", FORM)?,
            b: number(b, "rank", FORM)?,
            factor: number(factor, "factor", FORM)?,
        })
    }
}

impl FromStr for Transient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "R:FACTOR@ITER+COUNT, e.g. 5:2@20+3";
        let (fault, when) = halves(text, '@', FORM)?;
        let (from, count) = halves(when, '+', FORM)?;
        let RankFactor { rank, factor } = fault
            .parse()
            .map_err(|_| format!("`{fault}` is no rank with a factor; expected {FORM}"))?;
        Ok(Self {
            rank,
            factor,
            from: number(from, "iteration", FORM)?,
            count: number(count, "count of iterations", FORM)?,
        })
    }
}

impl FromStr for Rerun {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "ITER or ITER:R:FACTOR, e.g. 30 or 30:5:1.6";
        let (from, lost) = match text.split_once(':') {
            None => (text, None),
            Some((from, fault)) => {
                let fault = fault
                    .parse()
                    .map_err(|_| format!("`{fault}` is no rank with a factor; expected {FORM}"))?;
                (from, Some(fault))
            }
        };
        Ok(Self {
            from: number(from, "iteration", FORM)?,
            lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_are_read() {
        assert_eq!(
            "3-11:10".parse(),
            Ok(LinkFactor {
                a: 3,
                b: 11,
                factor: 10.0
            })
        );
        assert_eq!(
            "5:2@20+3".parse(),
            Ok(Transient {
                rank: 5,
                factor: 2.0,
                from: 20,
                count: 3
            })
        );
        let lost = Some(RankFactor { rank: 5, factor: 1.6 });
        assert_eq!("30:5:1.6".parse(), Ok(Rerun { from: 30, lost }));
        assert_eq!("30".parse(), Ok(Rerun { from: 30, lost: None }));
    }

    #[test]
    fn wrong_text_names_the_form() {
        let message = "13=1.3".parse::<RankFactor>().unwrap_err();
        assert!(message.contains("R:FACTOR"), "{message}");
        let message = "x:1.3".parse::<RankFactor>().unwrap_err();
        assert!(message.contains("`x` is no rank"), "{message}");
        assert!("5:2@20".parse::<Transient>().is_err());
        assert!("3:10".parse::<LinkFactor>().is_err());
    }
}

//! The classic detectors: raw durations of single calls, iteration by iteration, the union over the window.
//!
//! They do not take the waiting out of a call, so that a slow stage, uneven data and noise make suspects too. Data flows
//! `detectors` (suspect timers of workers) -> `places` (cross-validation of both ends). A job of two stages has too few
//! signals; `pairs` compares slow iterations with fast ones and says no more than that communication may be abnormal.

mod detectors;
mod pairs;
mod places;

use std::collections::BTreeMap;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

pub use detectors::Rule;
pub use pairs::may_be_abnormal;
pub use places::{Place, Worker};

use self::detectors::Iteration;
use super::links::{Link, links};
use crate::job::Job;

/// The thresholds of the classic detectors.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassicThresholds {
    /// A group's first call over the fastest group's, and of two stages a slow iteration over a fast one.
    pub threshold: f64,
    /// Last calls over the baseline.
    pub baseline_factor: f64,
    /// A call over the one before it.
    pub jump_factor: f64,
}

impl Default for ClassicThresholds {
    fn default() -> Self {
        Self {
            threshold: 1.3,
            baseline_factor: 2.0,
            jump_factor: 2.0,
        }
    }
}

/// Why a worker's timer is suspect.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The timer.
    pub timer: &'static str,
    /// The rule that its calls broke most.
    pub rule: Rule,
    /// By how much, at worst.
    pub ratio: f64,
    /// In how many iterations.
    pub iterations: usize,
}

/// The suspects of a job with single calls and three or more stages, by rank (position); `compute_slow` tells the cards.
#[must_use]
pub fn workers(job: &Job, thresholds: &ClassicThresholds, compute_slow: &[usize]) -> Vec<Worker> {
    let links = links(job, false);
    let found: Vec<Vec<detectors::Suspicion>> = (0..job.iterations.len())
        .into_par_iter()
        .map(|step| Iteration::new(job, step).suspicions(thresholds))
        .collect();
    let mut suspects = BTreeMap::<(usize, &'static str), Evidence>::new();
    for suspicions in found {
        // Several rules of one iteration count once.
        let mut worst = BTreeMap::<(usize, &'static str), detectors::Suspicion>::new();
        for suspicion in suspicions {
            let key = (suspicion.rank, suspicion.timer);
            let known = worst.entry(key).or_insert(suspicion);
            if suspicion.ratio > known.ratio {
                *known = suspicion;
            }
        }
        for (key, suspicion) in worst {
            let evidence = suspects.entry(key).or_insert(Evidence {
                timer: suspicion.timer,
                rule: suspicion.rule,
                ratio: suspicion.ratio,
                iterations: 0,
            });
            evidence.iterations += 1;
            if suspicion.ratio > evidence.ratio {
                (evidence.ratio, evidence.rule) = (suspicion.ratio, suspicion.rule);
            }
        }
    }
    places::cross_validate(&links, suspects, compute_slow)
}

/// The links of each rank: towards the next stage, towards the one before.
fn links_of(links: &[Link]) -> BTreeMap<usize, [Option<usize>; 2]> {
    let mut of = BTreeMap::<usize, [Option<usize>; 2]>::new();
    for (place, link) in links.iter().enumerate() {
        of.entry(link.up).or_default()[0] = Some(place);
        of.entry(link.down).or_default()[1] = Some(place);
    }
    of
}

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

pub(super) use pairs::CONSTANTS;

pub use detectors::Rule;
pub use pairs::may_be_abnormal;
pub use places::{FaultPlace, Worker};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::samples::{job, with_timer};

    /// Every call takes 10 ms but those that `longer` says.
    fn even(longer: impl Fn(&str, usize, usize) -> f64) -> Job {
        let mut job = job([4, 2, 1], 3, |_, _, _| 1.0);
        let tables = std::mem::take(&mut job.calls);
        for table in tables {
            let cells: Vec<Vec<f64>> = (0..8 * 3)
                .map(|cell| {
                    let calls = table.of(cell / 3, cell % 3).iter().enumerate();
                    calls
                        .map(|(call, _)| 0.01 * longer(&table.name, cell / 3, call))
                        .collect()
                })
                .collect();
            job.calls.push(crate::job::CallTable::new(
                &table.name,
                3,
                cells.iter().map(Vec::as_slice),
            ));
        }
        job
    }

    /// Fused calls carry both directions, which the baseline halves.
    fn fused(timer: &str) -> f64 {
        if timer.len() > 13 { 2.0 } else { 1.0 }
    }

    fn places(job: &Job) -> Vec<(usize, FaultPlace)> {
        let workers = workers(job, &ClassicThresholds::default(), &[]);
        workers.iter().map(|worker| (worker.rank, worker.place)).collect()
    }

    #[test]
    fn even_calls_make_no_suspects() {
        assert_eq!(places(&even(|timer, _, _| fused(timer))), []);
    }

    #[test]
    fn each_rule_has_its_own_suspect() {
        // One of two first calls is 1.4 x the other, within the baseline's factor.
        let first = even(|timer, rank, _| {
            if rank == 2 && timer == "forward-send" {
                1.4
            } else {
                fused(timer)
            }
        });
        let found = workers(&first, &ClassicThresholds::default(), &[]);
        assert_eq!((found.len(), found[0].rank, found[0].place), (1, 2, FaultPlace::OneEnd));
        assert_eq!(
            (found[0].evidence[0].rule, found[0].evidence[0].iterations),
            (Rule::FirstValue, 3)
        );
        let jump = even(|timer, rank, call| {
            if rank == 2 && timer == "forward-send" && call == 1 {
                2.2
            } else {
                fused(timer)
            }
        });
        let jumps = workers(
            &jump,
            &ClassicThresholds {
                baseline_factor: 9.0,
                ..ClassicThresholds::default()
            },
            &[],
        );
        assert_eq!(jumps[0].evidence[0].rule, Rule::SuddenIncrease);
        let baseline = workers(
            &jump,
            &ClassicThresholds {
                jump_factor: 9.0,
                ..ClassicThresholds::default()
            },
            &[],
        );
        assert_eq!(baseline[0].evidence[0].rule, Rule::Baseline);
    }

    #[test]
    fn both_ends_make_a_link_and_all_links_a_network() {
        // Rank 2 is of stage 1 and pipeline 0, between ranks 0 and 4.
        let slow = |pairs: &'static [(&'static str, usize)]| {
            even(move |timer, rank, _| {
                if pairs.contains(&(timer, rank)) {
                    5.0
                } else {
                    fused(timer)
                }
            })
        };
        let link = slow(&[("forward-send", 2), ("forward-recv", 4)]);
        assert_eq!(places(&link), [(2, FaultPlace::Link), (4, FaultPlace::Link)]);
        let every = slow(&[
            ("forward-send", 2),
            ("forward-recv", 4),
            ("backward-send", 2),
            ("backward-recv", 0),
        ]);
        assert!(places(&every).contains(&(2, FaultPlace::Network)));
        let card = workers(&every, &ClassicThresholds::default(), &[2]);
        assert!(
            card.iter()
                .any(|worker| worker.rank == 2 && worker.place == FaultPlace::Card)
        );
    }

    #[test]
    fn two_stages_compare_slow_iterations_with_fast_ones() {
        let timed = |factor: f64| {
            let job = job([2, 2, 1], 12, |_, _, _| 1.0);
            let job = with_timer(job, crate::contract::timers::INTERVAL_TIME, |_, step| 1.0 + step as f64);
            with_timer(
                job,
                "forward-send",
                move |rank, step| if rank == 1 && step > 5 { factor } else { 1.0 },
            )
        };
        let ranks: Vec<usize> = may_be_abnormal(&timed(1.5), 1.3)
            .iter()
            .map(|(rank, _)| *rank)
            .collect();
        assert_eq!(ranks, [1]);
        assert!(may_be_abnormal(&timed(1.2), 1.3).is_empty());
    }
}

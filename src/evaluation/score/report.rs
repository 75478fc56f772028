//! Outcomes added up.

use schemars::JsonSchema;
use serde::Serialize;

use super::judge::Answer;
use super::mark::Marks;
use super::network::{NetworkTally, SoundShare};
use super::run::Outcome;
use super::truth::Truth;
use crate::rules::Rules;

/// Sums over jobs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tally {
    /// The kind; `total` for all.
    pub kind: String,
    /// Jobs.
    pub jobs: usize,
    /// Jobs with nothing missing and nothing too much.
    pub exact: usize,
    /// Slow ranks that were named.
    pub tp: usize,
    /// Slow ranks that were not.
    #[serde(rename = "fn")]
    pub missed: usize,
    /// Ranks that were named and are not slow.
    pub fp: usize,
    /// Jobs with the right cause.
    pub cause: usize,
    /// Jobs that could not be analysed.
    pub failed: usize,
}

impl Tally {
    fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    fn add(&mut self, marks: Marks, failed: bool) {
        self.jobs += 1;
        self.exact += usize::from(marks.exact);
        self.tp += marks.tp;
        self.missed += marks.missed;
        self.fp += marks.fp;
        self.cause += usize::from(marks.cause);
        self.failed += usize::from(failed);
    }

    /// Share of the named ranks that are slow; 0 when nobody is named.
    #[must_use]
    pub fn precision(&self) -> f64 {
        self.tp as f64 / (self.tp + self.fp).max(1) as f64
    }

    /// Share of the slow ranks that are named; 0 when nobody is slow.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.tp as f64 / (self.tp + self.missed).max(1) as f64
    }

    /// Harmonic mean of precision and recall.
    #[must_use]
    pub fn f1(&self) -> f64 {
        let (precision, recall) = (self.precision(), self.recall());
        2.0 * precision * recall / (precision + recall).max(1e-9)
    }

    /// Share of the jobs that are exact.
    #[must_use]
    pub fn exact_share(&self) -> f64 {
        self.exact as f64 / self.jobs.max(1) as f64
    }
}

/// A job in which something is wrong with the answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Miss {
    /// The job.
    pub job: String,
    /// Its kind.
    pub kind: String,
    /// What is true, where that is known.
    pub truth: Option<Truth>,
    /// What was said; `None` where the job failed.
    pub answer: Option<Answer>,
    /// What that is worth.
    pub marks: Marks,
    /// Why the job failed.
    pub failure: Option<String>,
}

/// Jobs in which nobody is slow.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HealthyShare {
    /// How many there are.
    pub jobs: usize,
    /// In how many of them somebody is named.
    pub named: usize,
}

/// How one set of rules did.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RuleScore {
    /// The rules.
    pub rules: Rules,
    /// Sums by kind, in the order of the jobs.
    pub kinds: Vec<Tally>,
    /// Sums over all.
    pub total: Tally,
    /// See [`Tally::precision`].
    pub precision: f64,
    /// See [`Tally::recall`].
    pub recall: f64,
    /// See [`Tally::f1`].
    pub f1: f64,
    /// The jobs in which nobody is slow.
    pub healthy: HealthyShare,
    /// Sums over the jobs whose network is at fault, by kind.
    pub network: Vec<NetworkTally>,
    /// Sums over all of them.
    pub network_total: NetworkTally,
    /// The jobs whose network is sound.
    pub sound: SoundShare,
    /// The jobs that are not exact, have the wrong cause, blame a sound network, or failed.
    pub misses: Vec<Miss>,
}

/// A benchmark's result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// How each set of rules did.
    pub rules: Vec<RuleScore>,
    /// Labels of which there is no file.
    pub labels_without_file: Vec<String>,
    /// Files of which there is no label.
    pub files_without_label: Vec<String>,
    /// Wall time.
    pub seconds: f64,
}

impl Report {
    /// Adds up the outcomes of [`super::run()`], which was given the same rules.
    #[must_use]
    pub fn new(outcomes: &[Outcome], rules: &[Rules], seconds: f64) -> Self {
        let of = |(place, &rules): (usize, &Rules)| RuleScore::new(outcomes, rules, place);
        Self {
            rules: rules.iter().enumerate().map(of).collect(),
            labels_without_file: Vec::new(),
            files_without_label: Vec::new(),
            seconds,
        }
    }
}

impl RuleScore {
    fn new(outcomes: &[Outcome], rules: Rules, place: usize) -> Self {
        let mut kinds: Vec<Tally> = Vec::new();
        let mut total = Tally::new("total");
        let mut healthy = HealthyShare::default();
        let mut network: Vec<NetworkTally> = Vec::new();
        let mut network_total = NetworkTally::new("total");
        let mut sound = SoundShare::default();
        let mut misses = Vec::new();
        for outcome in outcomes {
            let said = outcome.answers.as_ref().ok().and_then(|answers| answers.get(place));
            let marks = said.map_or_else(|| Marks::of_failure(outcome.truth.as_ref()), |(_, marks)| *marks);
            let answer = said.map(|(answer, _)| answer);
            let same = |tally: &Tally| tally.kind == outcome.kind;
            entry(&mut kinds, same, || Tally::new(&outcome.kind)).add(marks, answer.is_none());
            total.add(marks, answer.is_none());
            if let Some(said) = marks.network {
                let same = |tally: &NetworkTally| tally.kind == outcome.kind;
                entry(&mut network, same, || NetworkTally::new(&outcome.kind)).add(said, marks.cause);
                network_total.add(said, marks.cause);
            } else if outcome.truth.is_some() {
                sound.jobs += 1;
                sound.blamed += usize::from(marks.blames_network);
            }
            if outcome.truth.as_ref().is_some_and(Truth::names_nobody) {
                healthy.jobs += 1;
                healthy.named += usize::from(answer.is_some_and(Answer::names_anybody));
            }
            if !(marks.exact && marks.cause) || marks.blames_network {
                misses.push(Miss {
                    job: outcome.name.clone(),
                    kind: outcome.kind.clone(),
                    truth: outcome.truth.clone(),
                    answer: answer.cloned(),
                    marks,
                    failure: outcome.answers.as_ref().err().cloned(),
                });
            }
        }
        Self {
            rules,
            precision: total.precision(),
            recall: total.recall(),
            f1: total.f1(),
            kinds,
            total,
            healthy,
            network,
            network_total,
            sound,
            misses,
        }
    }
}

/// The entry of a list that `same` holds for, made where it is missing.
fn entry<T>(list: &mut Vec<T>, same: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let place = list.iter().position(same).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    });
    &mut list[place]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::verdict::Cause;

    /// Three jobs, the first answered well by the first rules only, the last failed.
    pub fn outcomes() -> Vec<Outcome> {
        let truth = |kind: &str, slow: &[u32], cause: &str| Truth {
            slow_ranks: slow.to_vec(),
            ..serde_json::from_str(&format!(r#"{{"kind":"{kind}","cause":"{cause}"}}"#)).expect("a truth")
        };
        let outcome = |name: &str, truth: Truth, said: Result<[&[u32]; 2], String>| {
            let answer = |ranks: &[u32]| {
                let answer = Answer {
                    ranks: ranks.to_vec(),
                    nodes: Vec::new(),
                    cause: if ranks.is_empty() { Cause::None } else { Cause::Compute },
                };
                let marks = super::super::mark(&truth, &answer, |_| None);
                (answer, marks)
            };
            Outcome {
                name: name.to_owned(),
                kind: truth.kind.clone(),
                answers: said.map(|said| said.map(answer).into()),
                truth: Some(truth.clone()),
            }
        };
        vec![
            outcome("slow-1", truth("gpu-slow", &[3], "compute"), Ok([&[3], &[]])),
            outcome("well-1", truth("healthy", &[], "none"), Ok([&[7, 8], &[]])),
            outcome(
                "slow-2",
                truth("gpu-slow", &[1, 2], "compute"),
                Err("no rows".to_owned()),
            ),
        ]
    }

    #[test]
    fn sums_and_shares() {
        let report = Report::new(&outcomes(), &[Rules::Classic, Rules::Peer], 1.5);
        let [classic, peer] = report.rules.as_slice() else {
            panic!("two sets of rules");
        };
        let slow = &classic.kinds[0];
        assert_eq!(
            (slow.kind.as_str(), slow.jobs, slow.exact, slow.failed),
            ("gpu-slow", 2, 1, 1)
        );
        assert_eq!((slow.tp, slow.missed, slow.fp, slow.cause), (1, 2, 0, 1));
        assert_eq!((classic.total.jobs, classic.total.fp), (3, 2));
        assert_eq!((classic.healthy.jobs, classic.healthy.named), (1, 1));
        assert!((classic.precision - 1.0 / 3.0).abs() < 1e-12 && (classic.recall - 1.0 / 3.0).abs() < 1e-12);
        assert!((classic.f1 - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((peer.total.exact, peer.precision, peer.healthy.named), (1, 0.0, 0));
        assert_eq!(peer.misses.len(), 2);
        assert_eq!(peer.misses[1].failure.as_deref(), Some("no rows"));
    }
}

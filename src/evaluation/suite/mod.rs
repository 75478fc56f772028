//! Many simulated jobs by kind: what is wrong, or only looks so, with sizes, strengths and positions from a seed.
//!
//! A [`Kind`] and a seed give a [`Scenario`]; [`crate::evaluation::score`] simulates it and holds a verdict against its label. Noise
//! comes at two levels: like that of well-kept jobs, or as hard as the simulator makes it.
//!
//! In: kinds, seeds, a level of noise. Out: scenarios. May use: `simulate`.

mod courses;
mod draw;
mod groups;
mod healthy;
mod kinds;
mod levels;
mod network;
mod slow;
mod storage;
mod traced;
mod unrest;

use draw::Draw;
pub use kinds::KINDS;

use crate::evaluation::simulate::Scenario;

/// How noisy the jobs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoiseLevel {
    /// Calls vary by 0.6-3 %, ranks lastingly by 0.4-0.8 %; 15-60 iterations count.
    Soft,
    /// Calls vary by up to 5 %, ranks by up to 1 %; two jobs in five have 1 % of calls that take 1.5 to 3 times as long,
    /// one in five has lost and odd rows, one in seven no `self-attention-linear-qkv`; 20-200 iterations count.
    Hard,
}

impl NoiseLevel {
    /// The word on the command line and in names of jobs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Hard => "hard",
        }
    }
}

/// What kinds are scored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Slow ranks, imbalances and healthy jobs, by their timers' sums.
    Ranks,
    /// The network is at fault; with single calls.
    Network,
    /// The network is sound, whatever else is wrong; with single calls.
    SoundNetwork,
    /// What real clusters do: levels, courses in time, noise that is not white, shared storage, groups of several sorts.
    Clusters,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 4] = [Self::Ranks, Self::Network, Self::SoundNetwork, Self::Clusters];

    /// The word on the command line, for all of its kinds.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ranks => "ranks",
            Self::Network => "network",
            Self::SoundNetwork => "sound-network",
            Self::Clusters => "clusters",
        }
    }
}

/// A kind of job.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, e.g. `gpu-slow`.
    pub name: &'static str,
    /// What such a job holds.
    pub about: &'static str,
    /// The group that it is scored with.
    pub group: Group,
    build: fn(&mut Draw) -> Scenario,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Kind")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Kind {
    /// The job of this kind that belongs to a seed; the same one every time.
    #[must_use]
    pub fn scenario(&self, seed: u64, level: NoiseLevel) -> Scenario {
        let scenario = (self.build)(&mut Draw::new(self.name, seed, level));
        Scenario {
            job: format!("{}-{}-{seed}", self.name, level.name()),
            kind: Some(self.name.to_owned()),
            ..scenario
        }
    }

    /// The same job with levels that wander by 1-2 % (sd) over 10-30 steps; nothing else about it changes.
    #[must_use]
    pub fn wandering_scenario(&self, seed: u64, level: NoiseLevel) -> Scenario {
        let job = self.scenario(seed, level);
        let name = format!("{}-wander", job.job);
        let mut draw = Draw::new("wander beside", job.seed, level);
        Scenario {
            job: name,
            ..unrest::with_wander(&mut draw, job)
        }
    }
}

/// A kind of the group `clusters`.
const fn cluster(name: &'static str, build: fn(&mut Draw) -> Scenario, about: &'static str) -> Kind {
    Kind {
        name,
        about,
        group: Group::Clusters,
        build,
    }
}

/// The kind of a name.
#[must_use]
pub fn kind_of(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::simulate::Label;

    #[test]
    fn every_kind_is_possible_for_any_seed_and_says_what_it_should() {
        assert!(KINDS.len() >= 28);
        for kind in KINDS {
            for level in [NoiseLevel::Soft, NoiseLevel::Hard] {
                for seed in (0..40).chain([u64::MAX]) {
                    let scenario = kind.scenario(seed, level);
                    let label = Label::of(&scenario).unwrap_or_else(|error| panic!("{}: {error}", scenario.job));
                    let quiet = ["none", "stage-imbalance", "data-imbalance"].contains(&label.cause.as_str());
                    let told = !label.slow_ranks.is_empty() || label.network_nodes.is_some();
                    assert_eq!(label.status == "fault", told, "{}", scenario.job);
                    assert!(2 <= scenario.ranks() && scenario.ranks() <= 256, "{}", scenario.job);
                    assert_eq!(label.kind, kind.name);
                    if kind.group == Group::Clusters {
                        continue;
                    }
                    assert_eq!(quiet, label.slow_ranks.is_empty(), "{}", scenario.job);
                    let network = kind.group == Group::Network;
                    assert_eq!(scenario.has_network_fault(), network, "{}", scenario.job);
                    assert!(network || label.cause != "network", "{}", scenario.job);
                    assert!(!network || label.cause == "network" || kind.name == "network-gpu");
                    assert_eq!(scenario.trace, kind.group != Group::Ranks, "{}", scenario.job);
                }
            }
        }
    }

    #[test]
    fn wandering_adds_one_condition_and_shifts_no_draw() {
        let kind = kind_of("healthy-noisy").expect("a kind");
        let mut job = kind.wandering_scenario(7, NoiseLevel::Hard);
        assert_eq!(job.conditions.len(), 1);
        job.conditions.clear();
        let plain = kind.scenario(7, NoiseLevel::Hard);
        assert_eq!(
            Scenario {
                job: plain.job.clone(),
                ..job
            },
            plain
        );
    }

    #[test]
    fn sparse_jobs_keep_enough_rows() {
        let kind = kind_of("sparse-iterations").expect("a kind");
        for seed in 0..40 {
            let job = kind.scenario(seed, NoiseLevel::Soft);
            assert!(job.iterations / job.every >= 20, "{}", job.job);
        }
    }

    #[test]
    fn seeds_and_levels_differ_and_repeat() {
        let kind = kind_of("gpu-slow").expect("a kind");
        let one = kind.scenario(1, NoiseLevel::Soft);
        assert_eq!(one, kind.scenario(1, NoiseLevel::Soft));
        assert_ne!(one.seed, kind.scenario(2, NoiseLevel::Soft).seed);
        assert_ne!(one.seed, kind.scenario(1, NoiseLevel::Hard).seed);
        let shapes: std::collections::BTreeSet<(usize, usize, usize)> = (0..30)
            .map(|seed| kind.scenario(seed, NoiseLevel::Soft))
            .map(|scenario| (scenario.pp, scenario.tp, scenario.dp))
            .collect();
        assert!(shapes.len() > 10, "{shapes:?}");
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        assert!(kind_of("no such kind").is_none());
    }
}

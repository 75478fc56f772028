//! Many simulated jobs by kind: what is wrong, or only looks so, with sizes, strengths and positions from a seed.
//!
//! A [`Kind`] and a seed give a [`Scenario`]; [`crate::score`] simulates it and holds a verdict against its label. Noise
//! comes at two levels: like that of well-kept jobs, or as hard as the simulator makes it.

mod draw;
mod healthy;
mod slow;

use draw::Draw;
pub use draw::WARMUP;

use crate::simulate::Scenario;

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

/// A kind of job.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, e.g. `gpu-slow`.
    pub name: &'static str,
    /// What such a job holds.
    pub about: &'static str,
    /// Whether its fault shows in communication only.
    pub network: bool,
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
}

const fn kind(name: &'static str, build: fn(&mut Draw) -> Scenario, about: &'static str) -> Kind {
    Kind {
        name,
        about,
        network: false,
        build,
    }
}

const fn network(name: &'static str, build: fn(&mut Draw) -> Scenario, about: &'static str) -> Kind {
    Kind {
        network: true,
        ..kind(name, build, about)
    }
}

/// Every kind, in the order of the reports.
pub const KINDS: &[Kind] = &[
    kind("healthy", healthy::healthy, "nothing wrong"),
    kind(
        "healthy-noisy",
        healthy::noisy,
        "calls vary by 1.5-5 %, 1 % of them take 1.5-3x",
    ),
    kind(
        "healthy-large-spread",
        healthy::large_spread,
        "ranks differ lastingly by 0.9-1.3 % (sd)",
    ),
    kind("stall", healthy::stall, "one step takes 20-90 s longer on all ranks"),
    kind("transient", healthy::transient, "one rank is 2x slow for 1-3 steps"),
    kind("transient-pp2", healthy::transient_pp2, "the same with two stages"),
    kind(
        "stage-imbalance-first",
        healthy::first_stage,
        "the first stage has 1.3-1.8x the work",
    ),
    kind(
        "stage-imbalance-middle",
        healthy::middle_stage,
        "a middle stage has more work",
    ),
    kind(
        "stage-imbalance-last",
        healthy::last_stage,
        "the last stage has more work",
    ),
    kind(
        "seq-imbalance",
        healthy::sequences,
        "replicas' loads vary by 5-14 % from step to step",
    ),
    kind(
        "moe",
        healthy::experts,
        "ranks' expert loads vary by 4-9 % from step to step",
    ),
    kind("gpu-slow", slow::one, "one rank computes 8-100 % slower"),
    kind("gpu-faint", slow::faint, "one rank computes 3.5-5 % slower"),
    kind(
        "gpu-slow-onset",
        slow::onset,
        "one rank from a quarter to two thirds of the window on",
    ),
    kind(
        "gpu-slow-until",
        slow::until,
        "one rank until a half to four fifths of the window",
    ),
    kind("gpu-flaky", slow::flaky, "one rank in every second step"),
    kind(
        "two-slow",
        slow::two,
        "two ranks, of different strength when noise is hard",
    ),
    kind("three-slow", slow::three, "three ranks"),
    kind("node-slow", slow::node, "all ranks of a node"),
    kind("two-nodes-slow", slow::two_nodes, "all ranks of two nodes"),
    kind("majority", slow::majority, "more than half of the nodes, one stage"),
    kind("gpu-slow-stage", slow::beside_stage, "one rank beside a heavy stage"),
    kind(
        "gpu-slow-seq",
        slow::beside_sequences,
        "one rank 20-100 % slower, loads vary by 5-14 %",
    ),
    kind(
        "gpu-faint-seq",
        slow::faint_beside_sequences,
        "one rank 6-12 % slower, loads vary by 5-14 %",
    ),
    kind(
        "moe-slow",
        slow::beside_experts,
        "one rank 20-100 % slower, expert loads vary by 4-9 %",
    ),
    kind(
        "loader",
        slow::loader,
        "a first-stage rank's loader adds 12-60 % to its forward pass",
    ),
    kind("loader-last", slow::loader_last, "the same on the last stage"),
    kind(
        "rerun",
        slow::rerun,
        "the last third ran twice, the lost run with another fault",
    ),
    kind("rerun-healthy-now", healthy::rerun, "only the lost run had a fault"),
    kind(
        "dirty",
        slow::dirty,
        "one rank; rows lost, doubled, NaN or negative, a timer 0 on some ranks",
    ),
    kind(
        "no-topology",
        slow::no_topology,
        "one rank; no rows of parallel groups, several stages",
    ),
    kind("order", slow::order, "one rank; rank order tp, pp, dp"),
    kind(
        "no-qkv",
        slow::no_qkv,
        "one rank of a tensor-parallel group without a timer of its own",
    ),
    kind("dp1-onset", slow::alone, "one rank without peers, from some step on"),
    kind("dp2", slow::dp2, "one rank with a single peer, 12-100 % slower"),
    kind(
        "short-window",
        slow::short,
        "one rank in a job of 20 iterations, start-up included",
    ),
    network("nic-send", slow::nic_send, "what one rank sends takes 8-30x"),
    network("nic-recv", slow::nic_recv, "what one rank receives takes 8-30x"),
    network("slow-link", slow::link, "a link between two stages takes 8-30x"),
];

/// The kind of a name.
#[must_use]
pub fn kind_of(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Label;

    #[test]
    fn every_kind_is_possible_for_any_seed_and_says_what_it_should() {
        assert!(KINDS.len() >= 28);
        for kind in KINDS {
            for level in [NoiseLevel::Soft, NoiseLevel::Hard] {
                for seed in (0..40).chain([u64::MAX]) {
                    let scenario = kind.scenario(seed, level);
                    let label = Label::of(&scenario).unwrap_or_else(|error| panic!("{}: {error}", scenario.job));
                    let quiet = ["none", "stage-imbalance", "data-imbalance"].contains(&label.cause.as_str());
                    assert_eq!(quiet, label.slow_ranks.is_empty(), "{}", scenario.job);
                    assert_eq!(label.cause == "network", kind.network, "{}", scenario.job);
                    assert!(2 <= scenario.ranks() && scenario.ranks() <= 256, "{}", scenario.job);
                    assert_eq!(label.kind, kind.name);
                }
            }
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

//! What acts on a job beside the plain faults of a [`Scenario`]: noise that is no one's fault, and faults with a
//! course of their own.
//!
//! One file a condition. To add one: its file, and one line in the list below. Each has a text form,
//! `NAME:KEY=VALUE,...`, which the command line and the scenario's JSON take without knowing it.

mod bursts;
mod change;
mod checkpoints;
mod creep;
mod node_swap;
mod pauses;
mod slow_group;
mod spells;
mod storage;
mod text;
mod thermal;
mod together;
mod wander;

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::culprits::Fault;
use super::effects::Effects;
use super::error::ScenarioError;
use super::plan::PlannedStep;
use super::scenario::Scenario;

pub use bursts::Bursts;
pub use change::Change;
pub use checkpoints::Checkpoints;
pub use creep::Creep;
pub use node_swap::NodeSwap;
pub use pauses::Pauses;
pub use slow_group::SlowGroup;
pub use spells::{Span, Spells};
pub use storage::Storage;
pub use thermal::Thermal;
pub use together::Together;
pub use wander::Wander;

/// Something that acts on a job, step by step.
pub trait Acting: Debug + Send + Sync {
    /// Adds what it does in a step.
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects);
}

/// A condition's values: what they may be, what they do, and who is to blame.
pub trait Condition {
    /// Refuses values that the job can't have.
    ///
    /// # Errors
    /// The first impossible value.
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError>;

    /// Works out what is the same for all steps.
    fn prepare(&self, scenario: &Scenario) -> Box<dyn Acting>;

    /// What it makes the label say; nobody is to blame by default.
    fn guilt(&self, _scenario: &Scenario) -> Guilt {
        Guilt::default()
    }

    /// The restart that it brings: the first iteration of the second run.
    fn restart(&self) -> Option<u32> {
        None
    }

    /// The ranks that stand on another node from its restart on, with the node's name.
    fn moved(&self, _scenario: &Scenario) -> Option<(std::ops::Range<usize>, &str)> {
        None
    }
}

/// Who and what a condition makes slow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guilt {
    /// The sort of fault; `None`: nothing that a verdict should tell.
    pub fault: Option<Fault>,
    /// Whom it sits on. A fault without ranks has a cause and nobody to name.
    pub ranks: BTreeSet<usize>,
    /// Largest multiplier, where it multiplies.
    pub strength: Option<f64>,
}

impl Guilt {
    fn of(fault: Fault, ranks: impl IntoIterator<Item = usize>, strength: Option<f64>) -> Self {
        Self {
            fault: Some(fault),
            ranks: ranks.into_iter().collect(),
            strength,
        }
    }

    /// Whether there is a fault with nobody to name.
    pub fn is_nobodys(&self) -> bool {
        self.fault.is_some() && self.ranks.is_empty()
    }
}

/// The name, text form and meaning of a condition, for help and messages.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name in the text form.
    pub name: &'static str,
    /// An example of the text form.
    pub example: &'static str,
    /// What it does.
    pub about: &'static str,
}

macro_rules! conditions {
    ($($name:literal $type:ident, $example:literal, $about:literal;)*) => {
        /// A condition of any sort.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum AnyCondition {
            $(#[doc = $about] #[serde(rename = $name)] $type($type),)*
        }

        $(impl From<$type> for AnyCondition {
            fn from(condition: $type) -> Self {
                Self::$type(condition)
            }
        })*

        impl AnyCondition {
            /// Every condition there is.
            pub const ALL: &[About] = &[$(About { name: $name, example: $example, about: $about }),*];

            fn inner(&self) -> &dyn Condition {
                match self {
                    $(Self::$type(condition) => condition,)*
                }
            }
        }
    };
}

conditions! {
    "wander" Wander, "wander:sd=0.015,steps=20",
        "every rank's level wanders: an Ornstein-Uhlenbeck process of that relative sd and correlation time";
    "bursts" Bursts, "bursts:rate=0.04,most=2",
        "in that share of the steps a random rank begins 2-4 slow steps, 1.3 to MOST times as long";
    "pauses" Pauses, "pauses:share=0.02,seconds=0.3",
        "in that share of its steps a rank pauses (garbage collection), half to one and a half times SECONDS";
    "checkpoints" Checkpoints, "checkpoints:rank=0,every=20,seconds=2",
        "a rank writes every so many iterations";
    "together" Together, "together:factor=1.3,from=60",
        "all ranks compute that much longer from an iteration on, until one if that is given";
    "change" Change, "change:rank=5,factor=1.5,from=60",
        "a rank computes that much longer from an iteration on, until one if that is given";
    "spells" Spells, "spells:rank=5,factor=1.5,spells=20-26+41-48",
        "a rank computes that much longer in some stretches of iterations";
    "creep" Creep, "creep:rank=5,factor=1.5,from=10,to=60",
        "a rank gets slower evenly from an iteration on, until it reaches FACTOR and stays there";
    "thermal" Thermal, "thermal:rank=5,factor=1.3,period=9,hot=4",
        "a rank is slow in the first HOT steps of each PERIOD";
    "node-swap" NodeSwap, "node-swap:node=1,factor=1.5,from=60,to=gpu-spare",
        "the job restarts and the ranks of a node go on on another one, where they compute that much longer";
    "storage" Storage, "storage:from=60,seconds=0.05,spread=0.1,node=1,node-seconds=0.1",
        "loading a microbatch takes SECONDS longer on all ranks from an iteration on, and NODE-SECONDS more on a node";
    "slow-group" SlowGroup, "slow-group:rank=9,factor=3,from=60",
        "the gradient reduction of the group of a rank takes that much longer from an iteration on";
}

impl AnyCondition {
    /// See [`Condition::validate`].
    ///
    /// # Errors
    /// The first impossible value.
    pub fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        self.inner().validate(scenario)
    }

    /// See [`Condition::guilt`].
    pub fn guilt(&self, scenario: &Scenario) -> Guilt {
        self.inner().guilt(scenario)
    }

    pub(super) fn prepare(&self, scenario: &Scenario) -> Prepared {
        Prepared {
            fault: self.guilt(scenario).fault,
            acting: self.inner().prepare(scenario),
        }
    }

    /// See [`Condition::restart`].
    pub(super) fn restart(&self) -> Option<u32> {
        self.inner().restart()
    }

    /// See [`Condition::moved`].
    pub(super) fn moved(&self, scenario: &Scenario) -> Option<(std::ops::Range<usize>, &str)> {
        self.inner().moved(scenario)
    }
}

/// A condition that is ready to act.
#[derive(Debug)]
pub struct Prepared {
    /// The sort of its fault, where it is one.
    pub fault: Option<Fault>,
    /// What it does.
    pub acting: Box<dyn Acting>,
}

/// When something acts: from an iteration on, until one.
fn within(from: u32, until: Option<u32>, at: PlannedStep) -> bool {
    at.iteration >= from && until.is_none_or(|until| at.iteration <= until)
}

#[cfg(test)]
mod tests {
    use super::super::{Label, World, simulate, step};
    use super::*;

    fn job(condition: &str) -> Scenario {
        Scenario {
            pp: 1,
            tp: 1,
            dp: 16,
            iterations: 80,
            startup: 0.0,
            noise: 0.005,
            trace: false,
            conditions: vec![condition.parse().expect("a condition")],
            ..Scenario::default()
        }
    }

    #[test]
    fn every_example_is_possible_and_is_written_as_it_is_read() {
        for about in AnyCondition::ALL {
            let scenario = job(about.example);
            scenario
                .validate()
                .unwrap_or_else(|error| panic!("{}: {error}", about.name));
            let json = serde_json::to_string(&scenario).expect("JSON");
            assert_eq!(serde_json::from_str::<Scenario>(&json).expect("a scenario"), scenario);
        }
    }

    #[test]
    fn every_example_changes_the_rows_and_the_label_says_whom() {
        let plain = simulate(&Scenario {
            conditions: vec![],
            ..job(AnyCondition::ALL[0].example)
        })
        .expect("a job");
        for about in AnyCondition::ALL {
            let made = simulate(&job(about.example)).expect("a job");
            assert!(!made.frame.equals_missing(&plain.frame), "{}", about.name);
            let guilt = job(about.example).conditions[0].guilt(&job(about.example));
            assert_eq!(
                made.label.slow_ranks,
                guilt.ranks.into_iter().collect::<Vec<_>>(),
                "{}",
                about.name
            );
            let fault = guilt.fault.map_or("none", Fault::cause);
            assert_eq!(made.label.cause, fault, "{}", about.name);
        }
    }

    #[test]
    fn one_condition_does_not_change_the_draws_of_another() {
        let alone = job("bursts:rate=0.3,most=2");
        let mut both = alone.clone();
        both.conditions
            .insert(0, "wander:sd=0,steps=5".parse().expect("a condition"));
        let rows = |scenario: &Scenario| simulate(scenario).expect("a job").frame;
        assert!(rows(&alone).equals_missing(&rows(&both)));
    }

    /// Compute multipliers of a rank over the job's steps.
    pub(super) fn course(condition: &str, rank: usize) -> Vec<f64> {
        let scenario = job(condition);
        let world = World::new(&scenario).expect("a world");
        let steps = super::super::plan::plan(&scenario);
        steps
            .iter()
            .map(|&at| Effects::at(&scenario, &world, at).compute[rank])
            .collect()
    }

    #[test]
    fn steps_do_not_depend_on_their_order() {
        let scenario = job("wander:sd=0.02,steps=15");
        let world = World::new(&scenario).expect("a world");
        let steps = super::super::plan::plan(&scenario);
        let last = step::step(&scenario, &world, steps[70]).interval;
        let _ = step::step(&scenario, &world, steps[3]);
        assert_eq!(
            last.to_bits(),
            step::step(&scenario, &world, steps[70]).interval.to_bits()
        );
    }

    #[test]
    fn a_fault_beside_noise_keeps_its_label() {
        let mut scenario = job("wander:sd=0.01,steps=15");
        scenario.slow_ranks = vec!["7:1.3".parse().expect("a fault")];
        let label = Label::of(&scenario).expect("a label");
        assert_eq!((label.slow_ranks, label.cause.as_str()), (vec![7], "compute"));
        assert_eq!(label.cost_seconds.len(), 0);
    }
}

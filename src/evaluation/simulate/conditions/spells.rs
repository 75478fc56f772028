//! A fault that comes back.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between};
use super::{Acting, Condition, Guilt};

/// A stretch of iterations, both ends included, written `A-B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span {
    /// First iteration.
    pub from: u32,
    /// Last iteration.
    pub until: u32,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no stretch of iterations; expected A-B, e.g. 20-26");
        let (from, until) = text.split_once('-').ok_or_else(wrong)?;
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_| wrong());
        let span = Self {
            from: number(from)?,
            until: number(until)?,
        };
        if span.from > span.until { Err(wrong()) } else { Ok(span) }
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        format!("{}-{}", span.from, span.until)
    }
}

/// A rank that computes slowly in some stretches and well between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spells {
    /// The rank.
    pub rank: usize,
    /// Multiplier of its compute time.
    pub factor: f64,
    /// The stretches; a single one may stand without a list.
    #[serde(deserialize_with = "one_or_several")]
    pub spells: Vec<Span>,
}

fn one_or_several<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Span>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Spans {
        One(String),
        Several(Vec<String>),
    }
    let texts = match Spans::deserialize(from)? {
        Spans::One(text) => vec![text],
        Spans::Several(texts) => texts,
    };
    let spans = texts.into_iter().map(Span::try_from).collect::<Result<_, _>>();
    spans.map_err(serde::de::Error::custom)
}

impl Condition for Spells {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "rank", self.rank, scenario.ranks())?;
        between("condition", self.factor, 1.0, 1000.0)?;
        if self.spells.is_empty() {
            return Err(ScenarioError::new(
                "condition",
                "no stretch of iterations",
                "at least one",
            ));
        }
        self.spells
            .iter()
            .try_for_each(|span| scenario.within("condition", span.from))
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }

    fn guilt(&self, _scenario: &Scenario) -> Guilt {
        Guilt::of(Fault::Compute, [self.rank], Some(self.factor))
    }
}

impl Acting for Spells {
    fn act(&self, _scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if self
            .spells
            .iter()
            .any(|span| (span.from..=span.until).contains(&at.iteration))
        {
            effects.compute[self.rank] *= self.factor;
        }
    }
}

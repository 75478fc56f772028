//! What each number of the rules buys: it is moved to half and to twice its value, alone, and the same jobs are judged again.
//!
//! A number that changes no answer on jobs enough is one that the rules don't need; one whose move makes answers better is set wrong.
//! The jobs are loaded or simulated once and held in memory; `O(constants x jobs)` verdicts.

use rayon::prelude::*;
use serde::Serialize;

use super::cases::Case;
use super::error::CaseError;
use super::judge::{Answer, judge};
use super::mark::{Marks, mark};
use super::truth::Truth;
use crate::algos::Algorithm;
use crate::contract::constant::Movable;
use crate::job::Job;
use crate::rules::{self, RulesSettings};

/// What a number is multiplied by.
pub const FACTORS: [f64; 2] = [0.5, 2.0];

/// Answers added up over the jobs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Jobs with nothing missing and nothing too much.
    pub exact: usize,
    /// Jobs with the right cause.
    pub cause: usize,
    /// Ranks and nodes that were named and are not slow.
    pub false_names: usize,
}

/// What moving a number changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Moved {
    /// What the number was multiplied by.
    pub factor: f64,
    /// The sums with it.
    pub sums: Sums,
    /// Jobs whose answer differs.
    pub changed: usize,
}

/// A number of the rules, moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovedConstant {
    /// Module and name.
    pub name: &'static str,
    /// Its value in the rules.
    pub value: f64,
    /// One entry a factor that makes another number of it: half of a count of 1 is 1 again.
    pub moves: Vec<Moved>,
}

/// The numbers of the rules, moved one by one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Jobs that were judged.
    pub jobs: usize,
    /// Jobs that could not be loaded or simulated.
    pub failed: usize,
    /// The sums with every number as it is.
    pub unmoved: Sums,
    /// Every number, in the order of [`rules::constants`].
    pub constants: Vec<MovedConstant>,
}

/// A job in memory, with the truth.
struct Known {
    job: Job,
    truth: Truth,
}

/// Moves every number of the rules in turn and judges the cases anew; `settings` gives the settings with what is in force.
///
/// `progress` is called with the number of constants that are done. The numbers are the process's: nothing else may judge meanwhile.
#[must_use]
pub fn sensitivity(
    cases: &[Case],
    settings: &(dyn Fn() -> RulesSettings + Sync),
    algorithms: &[&'static dyn Algorithm],
    progress: &dyn Fn(usize),
) -> Sensitivity {
    let loaded: Vec<Result<Known, CaseError>> = cases
        .par_iter()
        .map(|case| case.job().map(|(job, truth)| Known { job, truth }))
        .collect();
    let failed = loaded.iter().filter(|known| known.is_err()).count();
    let jobs: Vec<Known> = loaded.into_iter().flatten().collect();
    let judged = || -> Vec<(Answer, Marks)> {
        let settings = settings();
        jobs.par_iter()
            .map(|known| known.answer(&settings, algorithms))
            .collect()
    };
    let unmoved = judged();
    let mut constants = Vec::new();
    for (done, constant) in rules::constants().into_iter().enumerate() {
        let mut moves = Vec::new();
        for factor in FACTORS {
            let back = Back(constant);
            if constant.move_to(constant.value() * factor) {
                let moved = judged();
                moves.push(Moved {
                    factor,
                    sums: Sums::of(&moved),
                    changed: moved.iter().zip(&unmoved).filter(|(a, b)| a.0 != b.0).count(),
                });
            }
            drop(back);
        }
        constants.push(MovedConstant {
            name: constant.name(),
            value: constant.value(),
            moves,
        });
        progress(done + 1);
    }
    Sensitivity {
        jobs: jobs.len(),
        failed,
        unmoved: Sums::of(&unmoved),
        constants,
    }
}

/// Puts a number back, also when judging panics.
struct Back(&'static dyn Movable);

impl Drop for Back {
    fn drop(&mut self) {
        self.0.move_to(self.0.value());
    }
}

impl Known {
    fn answer(&self, settings: &RulesSettings, algorithms: &[&'static dyn Algorithm]) -> (Answer, Marks) {
        let answer = judge(&self.job, settings, algorithms);
        let node_of = |rank| {
            let position = self.job.ranks.binary_search(&rank).ok()?;
            self.job.nodes.get(position).cloned()
        };
        let marks = mark(&self.truth, &answer, node_of);
        (answer, marks)
    }
}

impl Sums {
    fn of(answers: &[(Answer, Marks)]) -> Self {
        answers.iter().fold(Self::default(), |sums, (_, marks)| Self {
            exact: sums.exact + usize::from(marks.exact),
            cause: sums.cause + usize::from(marks.cause),
            false_names: sums.false_names + marks.fp,
        })
    }
}

impl MovedConstant {
    /// Whether no move of it changes an answer.
    #[must_use]
    pub fn moves_nothing(&self) -> bool {
        self.moves.iter().all(|moved| moved.changed == 0)
    }
}

/// Writes it for people: a line a number that moves something, then the names of those that move nothing.
#[must_use]
pub fn sensitivity_text(told: &Sensitivity) -> String {
    let cells = |sums: &Sums| format!("{:>5} {:>5} {:>5}", sums.exact, sums.cause, sums.false_names);
    let width = told
        .constants
        .iter()
        .map(|constant| constant.name.len())
        .max()
        .unwrap_or(0);
    let head = "exact cause false changed";
    let mut lines = vec![
        format!("{} jobs; as they are: {}", told.jobs, head.trim_end_matches(" changed")),
        format!("{:width$} {:>10}   {}", "", "", cells(&told.unmoved)),
        format!("{:width$} {:>10} | x0.5: {head} | x2: {head}", "number", "value"),
    ];
    for constant in told.constants.iter().filter(|constant| !constant.moves_nothing()) {
        let mut line = format!("{:width$} {:>10}", constant.name, constant.value);
        for factor in FACTORS {
            let moved = constant.moves.iter().find(|moved| moved.factor == factor);
            let cells = moved.map_or("-".to_owned(), |moved| {
                format!("{} {:>7}", cells(&moved.sums), moved.changed)
            });
            line += &format!(" | {cells:>27}");
        }
        lines.push(line);
    }
    let idle: Vec<&str> = told
        .constants
        .iter()
        .filter(|constant| constant.moves_nothing())
        .map(|constant| constant.name)
        .collect();
    if !idle.is_empty() {
        lines.push(format!("no answer depends on these here: {}", idle.join(", ")));
    }
    if told.failed > 0 {
        lines.push(format!("{} jobs could not be loaded", told.failed));
    }
    lines.join("\n") + "\n"
}

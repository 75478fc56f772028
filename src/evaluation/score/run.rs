//! The jobs through the rules, several at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cases::Case;
use super::error::CaseError;
use super::judge::{Answer, judge};
use super::mark::{Marks, mark};
use super::truth::Truth;
use crate::algos::Algorithm;
use crate::rules::RulesSettings;

/// What became of one job.
#[derive(Debug)]
pub struct Outcome {
    /// Name of the job.
    pub name: String,
    /// Its kind; `unknown` where its label can't be read.
    pub kind: String,
    /// What is true about it, where that is known.
    pub truth: Option<Truth>,
    /// What each set of rules said, with its marks; why there is no answer where the job failed.
    pub answers: Result<Vec<(Answer, Marks)>, String>,
}

/// Scores every case with every set of rules, each with the same algorithms.
///
/// As many jobs are worked on at once as there are threads in the pool, each held in memory only then; the outcomes
/// are in the order of the cases. `progress` is called with the number of jobs that are done.
#[must_use]
pub fn run(
    cases: &[Case],
    rules: &[RulesSettings],
    algorithms: &[&'static dyn Algorithm],
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let outcomes: Vec<Mutex<Option<Outcome>>> = cases.iter().map(|_| Mutex::new(None)).collect();
    // Threads beside the pool: one that waits for a job's parallel parts must not begin another job meanwhile, or as
    // many jobs would pile up as there are.
    let work = || {
        while let Some((case, place)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            cases.get(place).zip(outcomes.get(place))
        } {
            let outcome = score(case, rules, algorithms);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(cases.len()) {
            scope.spawn(work);
        }
    });
    outcomes
        .into_iter()
        .filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

fn score(case: &Case, rules: &[RulesSettings], algorithms: &[&'static dyn Algorithm]) -> Outcome {
    let known = match &case.truth {
        Ok(truth) => truth.clone(),
        Err(error) => return Outcome::failed(case, None, error.to_string()),
    };
    let scored = catch_unwind(AssertUnwindSafe(|| {
        let (job, truth) = case.job()?;
        let node_of = |rank| {
            let place = job.ranks.binary_search(&rank).ok()?;
            job.nodes.get(place).cloned()
        };
        let answers = rules
            .iter()
            .map(|rules| judge(&job, rules, algorithms))
            .map(|answer| {
                let marks = mark(&truth, &answer, node_of);
                (answer, marks)
            })
            .collect();
        Ok::<_, CaseError>((truth, answers))
    }));
    match scored.unwrap_or(Err(CaseError::Panicked)) {
        Ok((truth, answers)) => Outcome {
            name: case.name.clone(),
            kind: truth.kind.clone(),
            truth: Some(truth),
            answers: Ok(answers),
        },
        Err(error) => Outcome::failed(case, known, error.to_string()),
    }
}

impl Outcome {
    fn failed(case: &Case, truth: Option<Truth>, why: String) -> Self {
        Self {
            name: case.name.clone(),
            kind: case.kind().unwrap_or("unknown").to_owned(),
            truth,
            answers: Err(why),
        }
    }
}

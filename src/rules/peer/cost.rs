//! What mending something would save, as a share of the step.
//!
//! A step is modelled by what its units compute: a pipeline takes as long as its slowest stage, and once for all
//! microbatches together the others' share of one; the job waits for its longest pipeline. What would be saved is how much
//! shorter that becomes, never more than the step times show. `O(units x iterations)` each.

use super::rows_by_step::RowsByStep;
use super::tensor_groups::TensorGroups;
use crate::contract::constant::constants;
use crate::job::Job;
use crate::stats::{mean, median};

constants! {
    /// Microbatches of a step, where nothing tells: few, so that filling and draining the pipeline count.
    MICROBATCHES: f64 = 4.0;
    /// Fewest steps without a fault that tell how long a step takes without it.
    LEAST_STEPS: usize = 5;
}

/// A job's steps, made of what its units compute.
pub(super) struct StepModel {
    work: RowsByStep,
    pipelines: Vec<Vec<usize>>,
    pipeline_of: Vec<usize>,
    /// Pipelines x steps.
    lengths: RowsByStep,
    /// Sum of the modelled steps.
    whole: f64,
    /// Real over modelled steps, 1 at least: what is no computing can't be saved by mending computing.
    stretch: f64,
    /// Real steps in seconds; NaN where unknown.
    steps: Vec<f64>,
}

impl StepModel {
    /// The model of a job.
    pub fn new(job: &Job, units: &TensorGroups) -> Self {
        let usual = units.work.row_medians();
        let mut work = units.work.clone();
        work.change(|row, cells| {
            let missing = cells.iter_mut().filter(|cell| !cell.is_finite());
            missing.for_each(|cell| *cell = if usual[row].is_finite() { usual[row] } else { 0.0 });
        });
        let pipelines = units.places.pipelines.clone();
        let lengths = RowsByStep::fill(pipelines.len(), work.columns(), |pipeline, cells| {
            for (step, cell) in cells.iter_mut().enumerate() {
                *cell = length(pipelines[pipeline].iter().map(|&row| work.row(row)[step]));
            }
        });
        let modelled = longest(&lengths);
        let (_, steps) = job.step_seconds();
        let ratios = steps
            .iter()
            .zip(&modelled)
            .map(|(step, modelled)| step / (modelled * units.unit_seconds));
        let stretch = median(ratios);
        Self {
            whole: modelled.iter().sum(),
            stretch: if stretch.is_finite() { stretch.max(1.0) } else { 1.0 },
            pipeline_of: units.places.pipeline_of.clone(),
            work,
            pipelines,
            lengths,
            steps,
        }
    }

    /// What is saved when rows take 1 / `factor` of their time in the slow steps.
    pub fn mending(&self, rows: &[(usize, f64)], slow: &[bool]) -> f64 {
        let mut factor = vec![1.0; self.work.rows()];
        rows.iter().for_each(|&(row, excess)| factor[row] = excess.max(1.0));
        let mut touched = vec![false; self.pipelines.len()];
        rows.iter().for_each(|&(row, _)| touched[self.pipeline_of[row]] = true);
        let of_step = |step: usize| -> f64 {
            if !slow[step] {
                return 0.0;
            }
            let (mut before, mut after) = (0.0f64, 0.0f64);
            for (pipeline, rows) in self.pipelines.iter().enumerate() {
                let known = self.lengths.row(pipeline)[step];
                before = before.max(known);
                after = after.max(if touched[pipeline] {
                    length(rows.iter().map(|&row| self.work.row(row)[step] / factor[row]))
                } else {
                    known
                });
            }
            before - after
        };
        let saved: f64 = (0..slow.len()).map(of_step).sum();
        self.at_most_what_steps_show(self.share(saved), slow)
    }

    /// What is saved when each cell of the work becomes `instead(row, step, seconds)`.
    pub fn with(&self, instead: impl Fn(usize, usize, f64) -> f64 + Sync) -> f64 {
        let lengths = RowsByStep::fill(self.pipelines.len(), self.work.columns(), |pipeline, cells| {
            let rows = &self.pipelines[pipeline];
            for (step, cell) in cells.iter_mut().enumerate() {
                *cell = length(rows.iter().map(|&row| instead(row, step, self.work.row(row)[step])));
            }
        });
        self.share(self.whole - longest(&lengths).iter().sum::<f64>())
    }

    /// The usual step in seconds; NaN where unknown.
    pub fn usual_step(&self) -> f64 {
        median(self.steps.iter().copied())
    }

    /// What a row computes in a step, without gaps.
    pub fn work(&self) -> &RowsByStep {
        &self.work
    }

    fn share(&self, saved: f64) -> f64 {
        let share = saved / (self.whole * self.stretch);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// No more than the slow steps are longer than the others, where there are others.
    pub fn at_most_what_steps_show(&self, share: f64, slow: &[bool]) -> f64 {
        let those = |wanted: bool| {
            let of = self
                .steps
                .iter()
                .zip(slow)
                .filter(move |&(step, &slow)| slow == wanted && step.is_finite());
            of.map(|(&step, _)| step)
        };
        if those(false).count() < LEAST_STEPS.get() {
            return share;
        }
        let lost: f64 = (mean(those(true)) - median(those(false))) * those(true).count() as f64;
        let all: f64 = self.steps.iter().filter(|step| step.is_finite()).sum();
        let most = (lost / all).max(0.0);
        if most.is_finite() { share.min(most) } else { share }
    }
}

/// How long a pipeline takes whose stages take so long: the slowest for every microbatch, the others once.
fn length(stages: impl Iterator<Item = f64>) -> f64 {
    let (most, sum) = stages.fold((0.0f64, 0.0), |(most, sum), stage| (most.max(stage), sum + stage));
    most + (sum - most) / MICROBATCHES.get()
}

/// The longest pipeline of each step.
fn longest(lengths: &RowsByStep) -> Vec<f64> {
    lengths.map_columns(|column| column.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict, with_steps};

    fn cost(own: impl Fn(u32, usize) -> f64, stages: u32, step: impl Fn(usize) -> f64) -> f64 {
        let verdict = verdict(&with_steps(job(stages, 8, 40, own), step));
        verdict.findings[0].cost.expect("a cost")
    }

    #[test]
    fn what_is_saved_is_a_share_of_the_step() {
        // All of the step is computing of 3 s; one rank takes half as long again: a third of the step.
        let throughout = cost(|rank, _| if rank == 2 { 1.5 } else { 1.0 }, 1, |_| 4.5);
        assert!((throughout - 1.0 / 3.0).abs() < 0.03, "{throughout}");
        // The step takes three times as long as the computing.
        let in_part = cost(|rank, _| if rank == 2 { 1.5 } else { 1.0 }, 1, |_| 13.5);
        assert!((in_part - 1.0 / 9.0).abs() < 0.02, "{in_part}");
    }

    #[test]
    fn no_more_is_saved_than_the_steps_grew() {
        let own = |rank, step| if rank == 2 && step >= 20 { 1.5 } else { 1.0 };
        let grown = cost(own, 1, |step| if step >= 20 { 10.2 } else { 10.0 });
        assert!((grown - 0.01).abs() < 0.001, "{grown}");
    }
}

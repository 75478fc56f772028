//! A part of a job as a job.

use ndarray::Axis;

use super::calls::{self, CallTable};
use super::tables::Job;
use super::timer_table::{TimerTable, used, zeros};
use super::window::IterationRange;

impl Job {
    /// The part of the job that lies in a range of iterations, as if only that had been asked for.
    ///
    /// Timers without a row in it are left out. Ranks, nodes, topology and runs stay those of the whole job: a rank
    /// that has no row in the range keeps its place, with NaN in every table. A range that holds none of the job's
    /// iterations gives a job without iterations and timers. Columns that stand for several iterations can't be cut: of
    /// such a job ([`Job::iterations_per_column`]) a part is to be read anew.
    #[must_use]
    pub fn window(&self, range: IterationRange) -> Self {
        let inside: Vec<usize> = (0..self.iterations.len())
            .filter(|&place| range.contains(self.iterations[place]))
            .collect();
        let timers: Vec<TimerTable> = self
            .timers
            .iter()
            .map(|timer| TimerTable {
                name: timer.name.clone(),
                seconds: timer.seconds.select(Axis(1), &inside),
            })
            .filter(|timer| timer.seconds.iter().any(|seconds| !seconds.is_nan()))
            .collect();
        let mut quality = self.quality.clone();
        quality.outside_iterations += used(&self.timers) - used(&timers);
        quality.timer_rows_used = used(&timers);
        quality.zero_durations = zeros(&timers);
        let calls: Vec<CallTable> = self.calls.iter().map(|table| table.select(&inside)).collect();
        calls::count(&calls, &mut quality);
        quality.trace_rows_left_out += self.quality.trace_rows_used - quality.trace_rows_used;
        Self {
            id: self.id.clone(),
            ranks: self.ranks.clone(),
            nodes: self.nodes.clone(),
            iterations: inside.iter().map(|&place| self.iterations[place]).collect(),
            iteration_times: inside.iter().map(|&place| self.iteration_times[place]).collect(),
            timers,
            calls,
            topology: self.topology.clone(),
            runs: self.runs.clone(),
            quality,
            moves: self.moves.clone(),
            reduced: None,
            job_wide: self.job_wide.select(&inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::job::{DataQuality, Topology};

    #[test]
    fn a_cut_keeps_ranks_and_counts_what_it_leaves_out() {
        let table = |name: &str, seconds| TimerTable {
            name: name.to_owned(),
            seconds,
        };
        let job = Job {
            id: "j".to_owned(),
            ranks: vec![0, 4],
            nodes: vec!["a".to_owned(), "b".to_owned()],
            iterations: vec![11, 12, 20],
            iteration_times: vec![1, 2, 3],
            timers: vec![
                table("early", array![[1.0, 0.0, f64::NAN], [1.0, 1.0, f64::NAN]]),
                table("late", array![[f64::NAN, 0.0, 3.0], [1.0, f64::NAN, 3.0]]),
            ],
            calls: vec![CallTable::new(
                "forward-send",
                3,
                [&[0.1][..], &[], &[0.2, 0.3], &[f64::NAN], &[0.4], &[]],
            )],
            topology: Topology::unknown(&[0, 4]),
            runs: Vec::new(),
            quality: DataQuality {
                timer_rows_used: 8,
                zero_durations: 2,
                trace_rows: 4,
                trace_rows_used: 4,
                calls_used: 4,
                bad_calls: 1,
                ..DataQuality::default()
            },
            moves: Vec::new(),
            reduced: None,
            job_wide: crate::job::JobWide::default(),
        };
        let range = "12-30".parse().expect("a range");
        let cut = job.window(range);
        assert_eq!(
            (cut.iterations.as_slice(), cut.iteration_times.as_slice()),
            (&[12, 20][..], &[2, 3][..])
        );
        assert_eq!(cut.timers.len(), 2);
        assert_eq!((cut.quality.timer_rows_used, cut.quality.zero_durations), (5, 2));
        assert_eq!(cut.quality.outside_iterations, 3);
        assert_eq!(
            (cut.calls[0].of(0, 1), cut.calls[0].of(1, 0)),
            (&[0.2, 0.3][..], &[0.4][..])
        );
        let trace = (cut.quality.trace_rows_used, cut.quality.trace_rows_left_out);
        assert_eq!((trace, cut.quality.calls_used, cut.quality.bad_calls), ((2, 2), 3, 0));
        let cut = cut.window("20".parse().expect("a range"));
        let names: Vec<&str> = cut.timers.iter().map(|timer| timer.name.as_str()).collect();
        assert_eq!((names, cut.ranks.len()), (vec!["late"], 2));
        assert!(job.window("1-5".parse().expect("a range")).iterations.is_empty());
    }
}

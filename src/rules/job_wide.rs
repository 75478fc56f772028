//! What is said of a job that is known as a whole: in which steps it was slow, which timer grew, whom others named.

use crate::contract::constant::constants;
use crate::contract::defaults::SLOWDOWN_THRESHOLD;
use crate::contract::timers::{COMPUTING, FORWARD_BACKWARD, INTERVAL_TIME};
use crate::job::{Job, ReportedRank, SlowWindow, slow_windows};
use crate::stats::median;
use crate::verdict::{Cause, Finding, FindingKind, Status, words};

use super::Verdict;

constants! {
    /// Share of what the slowest rank's timer grew by from which the fastest rank grew alike.
    ALIKE: f64 = 0.5;
    /// Part of the step's growth from which a timer is named as one that grew.
    PART_OF_GROWTH: f64 = 0.1;
    /// NVRx calls a rank below it a straggler.
    NVRX_SLOW: f64 = 0.7;
    /// Times the shortest from which StragglerDetector's longest is worth a look.
    APART: f64 = 1.05;
}
/// Timers that a sentence names.
const MOST_NAMED: usize = 4;

/// The verdict on a job that names no rank.
pub(super) fn judge(job: &Job) -> Verdict {
    let mut verdict = Verdict::default();
    let spread = job.job_wide.timers.iter().any(|timer| timer.name != INTERVAL_TIME);
    let steps = job.job_wide.timer(INTERVAL_TIME).is_some();
    let why = match (spread, steps) {
        (true, _) => {
            "the log tells the least and the greatest time of any rank, not whose they are: which rank is slow can't be told; \
             `--timing-log-option all` prints every rank's"
        }
        (false, true) => {
            "the log tells how long the steps took and nothing of single ranks; `--timing-log-level 2 --timing-log-option \
             all` prints every rank's timers"
        }
        (false, false) => "reports name the extremes of all ranks; how the others are can't be told",
    };
    verdict.unjudged = Some(why.to_owned());
    "no transfers: the input names no ranks".clone_into(&mut verdict.communication.summary);
    verdict
}

/// Adds what the whole job's timers and others' reports say; neither changes who is named.
pub(super) fn add(job: &Job, mut verdict: Verdict) -> Verdict {
    if job.job_wide.timers.is_empty() && job.job_wide.reports.is_empty() {
        return verdict;
    }
    if job.ranks.len() < 2 {
        let windows = slow_windows(job, SLOWDOWN_THRESHOLD).windows;
        verdict
            .findings
            .extend(windows.iter().map(|window| slow_steps(job, window)));
    }
    verdict.findings.extend(candidates(job));
    verdict.status = Status::of(&verdict.findings, verdict.unjudged.as_deref());
    verdict
}

/// A timer inside and outside of a window.
struct Growth<'a> {
    name: &'a str,
    usual: f64,
    slow: f64,
    /// The same of the least of any rank.
    least: Option<(f64, f64)>,
}

impl Growth<'_> {
    fn by(&self) -> f64 {
        self.slow - self.usual
    }

    fn says(&self) -> String {
        let change = format!("{} {:.3} s instead of {:.3} s", self.name, self.slow, self.usual);
        match self.least {
            None => change,
            Some((usual, slow)) if slow - usual < ALIKE.get() * self.by() => {
                format!("{change} on the slowest rank, {slow:.3} s instead of {usual:.3} s on the fastest")
            }
            Some(_) => format!("{change}, on the fastest rank as well"),
        }
    }
}

/// A window of slow steps with the timers that grew in it.
fn slow_steps(job: &Job, window: &SlowWindow) -> Finding {
    let inside = |column: usize| job.iterations[column] <= window.last && window.first <= job.last_iteration_of(column);
    let columns: Vec<usize> = (0..job.iterations.len()).collect();
    let (slow, usual): (Vec<usize>, Vec<usize>) = columns.into_iter().partition(|&column| inside(column));
    let of = |values: &[f64], columns: &[usize]| {
        let known = columns
            .iter()
            .map(|&column| values[column])
            .filter(|seconds| !seconds.is_nan());
        median(known)
    };
    let mut growths: Vec<Growth> = job
        .job_wide
        .timers
        .iter()
        .filter(|timer| timer.name != INTERVAL_TIME && timer.name != FORWARD_BACKWARD)
        .map(|timer| Growth {
            name: &timer.name,
            usual: of(&timer.most, &usual),
            slow: of(&timer.most, &slow),
            least: Some((of(&timer.least, &usual), of(&timer.least, &slow))).filter(|(usual, _)| usual.is_finite()),
        })
        .collect();
    let own: Vec<Vec<f64>> = job.timers.iter().map(|timer| timer.seconds.row(0).to_vec()).collect();
    growths.extend(job.timers.iter().zip(&own).map(|(timer, values)| Growth {
        name: &timer.name,
        usual: of(values, &usual),
        slow: of(values, &slow),
        least: None,
    }));
    let step = window.slow_seconds - window.baseline_seconds;
    growths.retain(|growth| growth.by() > PART_OF_GROWTH.get() * step);
    growths.sort_by(|a, b| b.by().total_cmp(&a.by()).then_with(|| a.name.cmp(b.name)));
    let mut says = format!(
        "iterations {}-{}: steps take {:.3} s instead of {:.3} s (+{:.0} %)",
        window.first,
        window.last,
        window.slow_seconds,
        window.baseline_seconds,
        (window.factor - 1.0) * 100.0
    );
    let named: Vec<String> = growths.iter().take(MOST_NAMED).map(Growth::says).collect();
    let one_rank = job.ranks.len() == 1 && !job.timers.is_empty();
    if !named.is_empty() {
        says += &format!("; {}", named.join("; "));
    }
    let computes = growths.iter().any(|growth| COMPUTING.contains(&growth.name));
    let apart = growths.iter().any(|growth| {
        let apart = growth
            .least
            .is_some_and(|(usual, slow)| slow - usual < ALIKE.get() * growth.by());
        COMPUTING.contains(&growth.name) && apart
    });
    if one_rank {
        says += &format!("; these are the times of rank {} alone", job.ranks[0]);
        if !computes && !growths.is_empty() {
            says += ", whose computing did not grow: it waits";
        }
    } else if apart {
        says += "; some ranks compute slower than others, which ones the log does not tell";
    }
    Finding {
        says,
        first_iteration: Some(window.first),
        last_iteration: Some(window.last),
        ..Finding::new(FindingKind::SlowSteps, Cause::None, job.iteration_count())
    }
}

/// Ranks that reports name, each program's in findings of their own.
fn candidates(job: &Job) -> Vec<Finding> {
    let reports = &job.job_wide.reports;
    let mut findings = nvrx(reports);
    findings.extend(straggler_detector(reports));
    findings.extend(named_by(reports, "FlagScale/detected", "FlagScale's report"));
    findings.extend(named_by(reports, "NVRx/warning", "NVRx's warning"));
    for finding in &mut findings {
        finding.iterations = job.iteration_count();
    }
    findings
}

fn candidate(rank: u32, rows: &[&ReportedRank], says: String) -> Finding {
    let mut nodes: Vec<String> = rows.iter().filter_map(|row| row.node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    Finding {
        says: says + "; a candidate by that program alone, not compared here",
        ranks: vec![rank],
        nodes,
        first_iteration: rows.iter().map(|row| row.iteration).min(),
        last_iteration: rows.iter().map(|row| row.iteration).max(),
        ..Finding::new(FindingKind::Candidate, Cause::None, 0)
    }
}

/// The rows of some measures, a list a rank, ascending.
fn by_rank(reports: &[ReportedRank], of: impl Fn(&ReportedRank) -> bool) -> Vec<(u32, Vec<&ReportedRank>)> {
    let mut rows: Vec<&ReportedRank> = reports.iter().filter(|row| of(row)).collect();
    rows.sort_by_key(|row| row.rank);
    let lists = rows.chunk_by(|a, b| a.rank == b.rank);
    lists.map(|list| (list[0].rank, list.to_vec())).collect()
}

/// Ranks with a score below the one from which NVRx calls a rank a straggler.
fn nvrx(reports: &[ReportedRank]) -> Vec<Finding> {
    let low = |row: &ReportedRank| {
        let is_score = row.measure == "NVRx/relative" || row.measure == "NVRx/individual";
        is_score && row.value < NVRX_SLOW.get()
    };
    let finding = |(rank, rows): (u32, Vec<&ReportedRank>)| {
        let least = rows.iter().map(|row| row.value).fold(f64::INFINITY, f64::min);
        let node = rows.iter().find_map(|row| row.node.as_deref());
        let node = node.map_or_else(String::new, |node| format!(" on {node}"));
        let times = words::number(rows.len(), "time");
        let says = format!(
            "NVRx scores rank {rank}{node} below {} {times}, at the least {least:.2} (1 is best)",
            NVRX_SLOW.get()
        );
        candidate(rank, &rows, says)
    };
    by_rank(reports, low).into_iter().map(finding).collect()
}

/// The rank that heads StragglerDetector's reports, if it is one and the same and stands apart.
fn straggler_detector(reports: &[ReportedRank]) -> Option<Finding> {
    let of = |measure: &str| -> Vec<&ReportedRank> { reports.iter().filter(|row| row.measure == measure).collect() };
    let (longest, shortest) = (of("StragglerDetector/MxRtt"), of("StragglerDetector/MnRtt"));
    let pairs = longest
        .iter()
        .zip(&shortest)
        .filter(|(_, shortest)| shortest.value > 0.0);
    let apart = median(pairs.map(|(longest, shortest)| longest.value / shortest.value));
    let lists = by_rank(reports, |row| row.measure == "StragglerDetector/MxRtt");
    let (rank, rows) = lists
        .into_iter()
        .max_by_key(|(rank, rows)| (rows.len(), std::cmp::Reverse(*rank)))?;
    if 2 * rows.len() <= longest.len() || apart.is_nan() || apart < APART.get() {
        return None;
    }
    let says = format!(
        "StragglerDetector names rank {rank} the slowest in {} of {}: its forward takes {:.0} % longer than the fastest rank's",
        rows.len(),
        words::number(longest.len(), "report"),
        (apart - 1.0) * 100.0
    );
    Some(candidate(rank, &rows, says))
}

/// Ranks that a program names outright.
fn named_by(reports: &[ReportedRank], measure: &str, who: &str) -> Vec<Finding> {
    let finding = |(rank, rows): (u32, Vec<&ReportedRank>)| {
        let says = format!("{who} names rank {rank} {}", words::number(rows.len(), "time"));
        candidate(rank, &rows, says)
    };
    by_rank(reports, |row| row.measure == measure)
        .into_iter()
        .map(finding)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measure: &str, rank: u32, value: f64) -> ReportedRank {
        ReportedRank {
            measure: measure.to_owned(),
            rank,
            node: None,
            iteration: 10,
            value,
        }
    }

    fn ranks(reports: Vec<ReportedRank>) -> Vec<u32> {
        let mut job = Job::sample(1, 2, 1, 3);
        job.job_wide.reports = reports;
        candidates(&job).into_iter().flat_map(|finding| finding.ranks).collect()
    }

    #[test]
    fn the_worst_of_a_healthy_job_is_no_candidate() {
        assert!(ranks(vec![row("NVRx/relative", 7, 0.94), row("NVRx/individual", 3, 0.71)]).is_empty());
        assert_eq!(ranks(vec![row("NVRx/relative", 7, 0.69)]), [7]);
        let close = [
            row("StragglerDetector/MxRtt", 0, 3.468),
            row("StragglerDetector/MnRtt", 8, 3.453),
        ];
        assert!(ranks(close.to_vec()).is_empty());
    }

    #[test]
    fn a_rank_must_head_most_reports() {
        let report = |rank: u32| {
            [
                row("StragglerDetector/MxRtt", rank, 0.6),
                row("StragglerDetector/MnRtt", 8, 0.5),
            ]
        };
        assert_eq!(ranks([report(21), report(21), report(4)].concat()), [21]);
        assert!(ranks([report(21), report(4)].concat()).is_empty());
    }
}

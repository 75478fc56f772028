//! Which transfers are slower than those of their kind, lastingly.
//!
//! A flow is one direction of a link. Flows of one kind do the same work: between nodes or inside one. What the way between
//! two stages takes longer in all replicas is no flow's own ([`super::ways`]). Each iteration is held against its own lower
//! quartile over the kind, so that what slows all flows alike does not show, and a fault may take up to three quarters of
//! them. What only bounds a transfer is not compared: a slow stage would pass for a slow link.
//!
//! A level of the flow (its upper quartile over the window, or its median at the end of it) is slow when it stands apart:
//! a gap parts it from the usual flows, which make a quarter of the kind at least, and it exceeds them by the floor, and
//! by their own spread and error many times over. `O(flows x iterations)` and some sorts.

use rayon::prelude::*;

use super::links::{Direction, Link};
use super::thresholds::{
    DEVIATIONS, FEWEST, FLOW_QUANTILE, FUSED_SHARE, GAP, LEAST_FACTOR, LEAST_USUAL, LEVEL_QUANTILE, QUARTILE_ERROR,
    USUAL_SPREAD, USUAL_SPREAD_FLOWS, recent_steps,
};
use super::transfers::{Measured, Series};
use super::ways::{StageNetwork, Ways};
use crate::stats::{mad, median, quantile, sorted};
use crate::verdict::Persistence;
use crate::verdict::SlowSteps;

/// A direction of a link, judged.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Position of the link.
    pub link: usize,
    /// Which way.
    pub direction: Direction,
    /// Rank (position) that sends.
    pub sender: usize,
    /// Rank (position) that receives.
    pub receiver: usize,
    /// Whether both are on one node.
    pub inside_node: bool,
    /// Transfer, the median over the iterations, seconds; NaN without a pair.
    pub seconds: f64,
    /// What flows of its kind usually take, seconds; NaN where they are too few to tell.
    pub usual: f64,
    /// What was found, where it is slow.
    pub slow: Option<SlowFlow>,
}

/// A flow that is slow.
#[derive(Debug, Clone)]
pub struct SlowFlow {
    /// Times the usual transfer, where it is slow.
    pub factor: f64,
    /// Seconds beyond the usual transfer, where it is slow.
    pub extra: f64,
    /// Whether each iteration is slow.
    pub steps: SlowSteps,
}

impl Flow {
    /// Whether there were enough of its kind to compare it with.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        self.usual.is_finite() && self.seconds.is_finite()
    }
}

/// All flows, judged.
#[derive(Debug)]
pub struct Judged {
    /// By link, forward first.
    pub flows: Vec<Flow>,
    /// Stage pairs (the earlier stage) whose transfers all take longer than those of others, and how many times as long.
    pub long_ways: Vec<(u32, f64)>,
}

/// Judges both directions of every link; `stages`: what else is known of each stage's network.
#[must_use]
pub fn judge(links: &[Link], measured: &[Measured], stages: &[StageNetwork], persistence: &Persistence) -> Judged {
    let mut logs: Vec<Vec<f64>> = links
        .par_iter()
        .zip(measured)
        .flat_map_iter(|(_, measured)| Direction::BOTH.map(|way| logs(&measured.seconds[Series::plain(way) as usize])))
        .collect();
    let mut inside = [Vec::new(), Vec::new()];
    for (place, link) in links.iter().enumerate() {
        for flow in [2 * place, 2 * place + 1] {
            if measured[place].exact && logs[flow].iter().any(|log| log.is_finite()) {
                inside[usize::from(link.inside_node)].push(flow);
            }
        }
    }
    let mut flows: Vec<Flow> = links.iter().enumerate().flat_map(unjudged).collect();
    for (flow, logs) in flows.iter_mut().zip(&logs) {
        flow.seconds = median(logs.iter().copied()).exp();
    }
    let ways = Ways::of(links, &logs, &inside, stages);
    for (place, link) in links.iter().enumerate() {
        for row in &mut logs[2 * place..2 * place + 2] {
            let longer = ways.longer(link);
            row.iter_mut().for_each(|log| *log -= longer);
        }
    }
    for members in with_few_joined(inside) {
        let rows: Vec<&[f64]> = members.iter().map(|&flow| logs[flow].as_slice()).collect();
        let Some(kind) = Comparison::new(&rows) else {
            continue;
        };
        for (place, &flow) in members.iter().enumerate() {
            let way = ways.longer(&links[flow / 2]).exp();
            let usual = kind.usual * way;
            flows[flow].usual = usual;
            flows[flow].slow = kind
                .slow(place, persistence)
                .map(|slow| SlowFlow {
                    extra: slow.extra * way,
                    ..slow
                })
                .filter(|slow| fused_agree(&measured[flow / 2], slow, usual));
        }
    }
    Judged {
        flows,
        long_ways: ways.long(),
    }
}

fn unjudged((place, link): (usize, &Link)) -> [Flow; 2] {
    Direction::BOTH.map(|direction| {
        let (sender, receiver) = link.ends(direction);
        Flow {
            link: place,
            direction,
            sender,
            receiver,
            inside_node: link.inside_node,
            seconds: f64::NAN,
            usual: f64::NAN,
            slow: None,
        }
    })
}

/// Logarithms of positive times, NaN of others.
pub(super) fn logs(seconds: &[f64]) -> Vec<f64> {
    let log = |&seconds: &f64| if seconds > 0.0 { seconds.ln() } else { f64::NAN };
    seconds
        .iter()
        .map(log)
        .map(|log| if log.is_finite() { log } else { f64::NAN })
        .collect()
}

/// The flows between nodes and those inside, to be compared among themselves. A few inside nodes join those between
/// nodes, which are not faster; the other way round nothing could be told.
fn with_few_joined([mut between, mut inside]: [Vec<usize>; 2]) -> [Vec<usize>; 2] {
    if inside.len() < FEWEST.get() {
        between.append(&mut inside);
        between.sort_unstable();
    }
    [between, inside]
}

/// The flows of one kind, about their usual level.
pub(super) struct Comparison {
    /// Flows x iterations, log, about each iteration's lower quartile.
    rows: Vec<Vec<f64>>,
    /// Each iteration's lower quartile, log.
    reference: Vec<f64>,
    /// What a usual flow's row is, log.
    base: f64,
    /// Seconds of a usual flow.
    pub usual: f64,
    /// The whole window, then its end.
    tests: [Test; 2],
}

/// The levels of all flows in one part of the window.
struct Test {
    levels: Vec<f64>,
    base: f64,
    threshold: f64,
}

impl Comparison {
    /// Compares rows of logarithms; `None` for too few of them.
    pub fn new(rows: &[&[f64]]) -> Option<Self> {
        if rows.len() < FEWEST.get() {
            return None;
        }
        let steps = rows[0].len();
        let reference: Vec<f64> = (0..steps)
            .into_par_iter()
            .map(|step| {
                let sorted = sorted(rows.iter().map(|row| row[step]));
                if sorted.is_empty() {
                    f64::NAN
                } else {
                    quantile(&sorted, FLOW_QUANTILE.get())
                }
            })
            .collect();
        let about = |row: &&[f64]| row.iter().zip(&reference).map(|(log, usual)| log - usual).collect();
        let rows: Vec<Vec<f64>> = rows.par_iter().map(about).collect();
        let recent = recent_steps(steps);
        let whole = |row: &Vec<f64>| upper_quartile(row);
        let end = |row: &Vec<f64>| {
            let end = &row[steps.saturating_sub(recent)..];
            let known = end.iter().filter(|log| log.is_finite()).count();
            if 2 * known > recent.min(steps) {
                median(end.iter().copied())
            } else {
                f64::NAN
            }
        };
        let noise = median(rows.iter().map(|row| mad(row)));
        let tests = [
            Test::new(rows.iter().map(whole).collect(), noise, steps),
            Test::new(rows.iter().map(end).collect(), noise, recent.min(steps)),
        ];
        let middles: Vec<f64> = rows.iter().map(|row| median(row.iter().copied())).collect();
        let base = median(usual_of(&middles));
        let usual = (median(reference.iter().copied()) + base).exp();
        Some(Self {
            rows,
            reference,
            base,
            usual,
            tests,
        })
    }

    /// What is known of a row that is slow, lastingly.
    pub fn slow(&self, flow: usize, persistence: &Persistence) -> Option<SlowFlow> {
        self.tests.iter().find_map(|test| {
            let excess = test.levels[flow] - test.base;
            if excess.is_nan() || excess <= test.threshold {
                return None;
            }
            let row = &self.rows[flow];
            let steps = SlowSteps::of(row, self.base, excess, persistence);
            if !steps.lasting {
                return None;
            }
            let slow = || (0..row.len()).filter(|&step| steps.slow[step]);
            let usual = |step: usize| (self.reference[step] + self.base).exp();
            let factor = median(slow().map(|step| row[step] - self.base)).exp();
            let extra = median(slow().map(|step| (self.reference[step] + row[step]).exp() - usual(step)));
            // Times that no machine takes.
            let possible = factor.is_finite() && extra.is_finite();
            possible.then_some(SlowFlow { factor, extra, steps })
        })
    }
}

impl Test {
    fn new(levels: Vec<f64>, noise: f64, steps: usize) -> Self {
        let usual = usual_of(&levels);
        let base = median(usual.iter().copied());
        let count = usual.len() as f64;
        let own = mad(&usual);
        let trust = USUAL_SPREAD_FLOWS.get();
        let spread = ((count * own * own + trust * USUAL_SPREAD.get() * USUAL_SPREAD.get()) / (count + trust)).sqrt();
        let error = QUARTILE_ERROR.get() * noise / (steps.max(1) as f64).sqrt();
        Self {
            threshold: LEAST_FACTOR.get().ln().max(DEVIATIONS.get() * spread.hypot(error)),
            levels,
            base,
        }
    }
}

fn upper_quartile(row: &[f64]) -> f64 {
    let sorted = sorted(row.iter().copied());
    if sorted.is_empty() {
        f64::NAN
    } else {
        quantile(&sorted, LEVEL_QUANTILE.get())
    }
}

/// The levels below the first gap that leaves enough of them below; all of them where there is none.
fn usual_of(levels: &[f64]) -> Vec<f64> {
    let mut sorted = sorted(levels.iter().copied());
    let least = ((LEAST_USUAL.get() * sorted.len() as f64).ceil() as usize).max(2);
    let gap = (least..sorted.len()).find(|&place| sorted[place] - sorted[place - 1] > GAP.get().ln());
    sorted.truncate(gap.unwrap_or(sorted.len()));
    sorted
}

/// Whether the fused calls over the link, where there are any in its slow steps, are slow too.
fn fused_agree(measured: &Measured, slow: &SlowFlow, usual: f64) -> bool {
    let fused = &measured.seconds[Series::Fused as usize];
    let seconds = median(
        fused
            .iter()
            .zip(&slow.steps.slow)
            .filter(|(_, slow)| **slow)
            .map(|(seconds, _)| *seconds),
    );
    // NaN without a fused call: nothing to disagree.
    let disagree = seconds.ln() - usual.ln() < FUSED_SHARE.get() * slow.factor.ln();
    !disagree
}

#[cfg(test)]
#[path = "flows_tests.rs"]
mod tests;

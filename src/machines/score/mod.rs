//! How different a machine is from its peers.
//!
//! [`levels`] judges minutes at once with a score whose null distribution is known, on [`deviations`] from the machines'
//! median, by [`stretches`] and what [`peers`] show; [`windows`] is Minder's letter: a candidate a window, kept for minutes.
//! [`tails`] holds the distributions.

pub mod deviations;
pub mod levels;
pub mod moments;
pub mod peers;
pub mod stretches;
pub mod tails;
pub mod windows;

/// What one metric says of one machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineScore {
    /// Size-free score: a standard normal variable on a healthy machine.
    pub score: f64,
    /// First window of the stretch that gave the score.
    pub first: usize,
    /// Window after its last one.
    pub end: usize,
    /// Mean deviation from the peers in the stretch, in the metric's unit.
    pub deviation: f64,
    /// What healthy machines deviate by over such a stretch, in the metric's unit.
    pub usual: f64,
}

/// What one metric says.
#[derive(Debug, Clone, Default)]
pub struct MetricScores {
    /// A score a machine.
    pub machines: Vec<MachineScore>,
    /// Median of the machines, window by window.
    pub median: Vec<f32>,
    /// Scores by stretch (or window) and machine, for the table of scores: start window, scores.
    pub by_stretch: Vec<(usize, Vec<f32>)>,
}

/// Median of some values; reorders them. NaN on none.
pub(super) fn median(values: &mut [f32]) -> f32 {
    let count = values.len();
    if count == 0 {
        return f32::NAN;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f32::total_cmp);
    if count % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().max_by(f32::total_cmp).unwrap_or(upper);
    f32::midpoint(lower, upper)
}

/// The value below which a share of the values lies (nearest rank); reorders them. NaN on none.
pub(super) fn quantile(values: &mut [f32], share: f64) -> f32 {
    if values.is_empty() {
        return f32::NAN;
    }
    let place = ((values.len() - 1) as f64 * share).round() as usize;
    *values.select_nth_unstable_by(place, f32::total_cmp).1
}

//! Stretches of a machine's deviations: where they lie, their means, and what of them no burst explains.

use super::{median, quantile};

/// Time between the starts of stretches.
const STEP_S: f32 = 8.0;
/// Lengths of stretches, in continuities. A fault that is weak beside the noise shows itself when it has lasted longer.
const LENGTHS: [f32; 5] = [1.0, 1.25, 1.5, 2.0, 3.0];
/// A burst of this share of the continuity leaves enough of it to be judged by what is left; longer ones are told by the
/// share of the stretch that lasts.
const BURST_SHARE: f32 = 0.625;
/// Blocks whose median is a machine's reference.
const BLOCK_S: f32 = 32.0;
/// Time beside a stretch that is left out of the machine's own reference: faults come and go gradually.
const BESIDE_S: f32 = 30.0;
/// Blocks that a reference needs.
const FEWEST_BLOCKS: usize = 3;
/// Of fewer blocks a burst may be the better part: not their median but those that lie nearest to the stretch's level count.
const MANY_BLOCKS: usize = 8;
/// So many of them.
const NEAR_SHARE: f64 = 0.2;
/// A deviation joins a stretch with this share of its mean size.
const JOINING_SIZE: f32 = 0.5;
/// Windows that must be there in a stretch.
const PRESENT_SHARE: f64 = 0.75;
/// A lasting deviation has at least this share of its mean size...
const LASTING_SIZE: f32 = 0.35;
/// ...in at least this share of the stretch.
const LASTING_SHARE: f32 = 0.93;

/// A stretch of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// First window.
    pub start: usize,
    /// Window after the last one.
    pub end: usize,
    /// Place of its length among the plan's.
    pub length: usize,
}

/// Where the stretches of a metric lie.
#[derive(Debug, Clone)]
pub struct Stretches {
    /// All of them: by length, then by start.
    pub all: Vec<Stretch>,
    /// Lengths in windows, the shortest first.
    pub lengths: Vec<usize>,
    /// Windows of the longest burst.
    pub burst: usize,
    /// Windows of a block.
    pub block: usize,
    /// Windows between the starts of stretches.
    pub step: usize,
    /// Windows beside a stretch that its reference leaves out.
    pub beside: usize,
}

impl Stretches {
    /// Lays the stretches over so many windows; none where they are too few.
    #[must_use]
    pub fn new(windows: usize, slide_s: f32, continuity_s: f32) -> Self {
        let count = |seconds: f32| ((seconds / slide_s).round() as usize).max(1);
        let shortest = count(continuity_s);
        let mut lengths: Vec<usize> = LENGTHS.iter().map(|times| count(times * continuity_s)).collect();
        lengths.dedup();
        lengths.retain(|&long| long <= windows);
        let mut all = Vec::new();
        for (length, &long) in lengths.iter().enumerate() {
            let place = |start| Stretch {
                start,
                end: start + long,
                length,
            };
            all.extend((0..=windows - long).step_by(count(STEP_S)).map(place));
            if all.last().is_some_and(|last| last.end < windows) {
                all.push(place(windows - long));
            }
        }
        Self {
            all,
            lengths,
            burst: ((BURST_SHARE * shortest as f32) as usize).min(shortest - 1),
            block: count(BLOCK_S),
            step: count(STEP_S),
            beside: count(BESIDE_S),
        }
    }
}

/// A machine's deviations, with running sums.
#[derive(Debug)]
pub struct Row<'a> {
    /// A value a window; NaN where there is none.
    pub values: &'a [f32],
    sums: Vec<f64>,
    counts: Vec<u32>,
    /// Means of blocks that follow each other; NaN where there is none.
    pub blocks: Vec<f32>,
}

impl<'a> Row<'a> {
    /// Sums up a row.
    #[must_use]
    pub fn new(values: &'a [f32], block: usize) -> Self {
        let (mut sum, mut count) = (0.0, 0);
        let mut sums = Vec::with_capacity(values.len() + 1);
        let mut counts = Vec::with_capacity(values.len() + 1);
        sums.push(0.0);
        counts.push(0);
        for &value in values {
            if !value.is_nan() {
                sum += f64::from(value);
                count += 1;
            }
            sums.push(sum);
            counts.push(count);
        }
        let mut row = Self {
            values,
            sums,
            counts,
            blocks: Vec::new(),
        };
        // NaN where there is none.
        let starts = (0..(values.len() + 1).saturating_sub(block)).step_by(block.max(1));
        row.blocks = starts
            .map(|start| row.mean(start, start + block).unwrap_or(f32::NAN))
            .collect();
        row
    }

    /// Sum and number of the values between two windows.
    fn sum(&self, start: usize, end: usize) -> (f64, u32) {
        (self.sums[end] - self.sums[start], self.counts[end] - self.counts[start])
    }

    /// Mean between two windows; nothing where too many are missing.
    #[must_use]
    pub fn mean(&self, start: usize, end: usize) -> Option<f32> {
        let (sum, count) = self.sum(start, end);
        (count > 0 && f64::from(count) >= PRESENT_SHARE * (end - start) as f64).then(|| (sum / f64::from(count)) as f32)
    }

    /// The machine's own level outside of a stretch whose mean is `mean`, and outside of what joins it: a fault that lasts
    /// longer than the stretch must not be its own reference.
    #[must_use]
    pub fn reference(&self, stretch: Stretch, mean: f32, plan: &Stretches) -> Option<f32> {
        let (start, end) = self.extent(stretch, mean, plan.block);
        let before = start.saturating_sub(plan.beside) / plan.block;
        let after = (end + plan.beside).div_ceil(plan.block);
        let outside = self.blocks.iter().enumerate();
        let mut outside: Vec<f32> = outside
            .filter(|(place, value)| (*place < before || *place >= after) && !value.is_nan())
            .map(|(_, &value)| value)
            .collect();
        let blocks = outside.len();
        if blocks < FEWEST_BLOCKS {
            return None;
        }
        let share = match (blocks < MANY_BLOCKS, mean > 0.0) {
            (false, _) => return Some(median(&mut outside)),
            (true, true) => 1.0 - NEAR_SHARE,
            (true, false) => NEAR_SHARE,
        };
        Some(quantile(&mut outside, share))
    }

    /// The stretch with what joins it: blocks before and after it whose mean has the sign of `mean` and half its size.
    fn extent(&self, stretch: Stretch, mean: f32, block: usize) -> (usize, usize) {
        let on = |start: usize, end: usize| {
            let beside = self.mean(start, end);
            beside.is_none_or(|beside| beside * mean.signum() >= JOINING_SIZE * mean.abs())
        };
        let Stretch { mut start, mut end, .. } = stretch;
        while start > 0 && on(start.saturating_sub(block), start) {
            start = start.saturating_sub(block);
        }
        while end < self.values.len() && on(end, (end + block).min(self.values.len())) {
            end = (end + block).min(self.values.len());
        }
        (start, end)
    }

    /// The smallest mean, towards `sign`, of what is left of a stretch when a burst is taken out of it anywhere.
    ///
    /// A burst leaves a healthy machine's noise there, whatever its own size; a fault leaves its level.
    #[must_use]
    pub fn weakest_rest(&self, stretch: Stretch, burst: usize, sign: f32) -> f32 {
        let (whole, all) = self.sum(stretch.start, stretch.end);
        let mut least = f64::INFINITY;
        for start in stretch.start..=stretch.end - burst {
            let (taken, count) = self.sum(start, start + burst);
            if all > count {
                least = least.min((whole - taken) / f64::from(all - count) * f64::from(sign));
            }
        }
        if least.is_finite() { least as f32 } else { 0.0 }
    }

    /// Whether nearly all values of a stretch lie off `from` by a good part of `level`.
    #[must_use]
    pub fn lasts(&self, stretch: Stretch, from: f32, level: f32) -> bool {
        let (sign, least) = (level.signum(), LASTING_SIZE * level.abs());
        let values = &self.values[stretch.start..stretch.end];
        let (present, lasting) = values.iter().fold((0_usize, 0_usize), |(present, lasting), &value| {
            let enough = (value - from) * sign >= least;
            (present + usize::from(!value.is_nan()), lasting + usize::from(enough))
        });
        lasting as f32 >= LASTING_SHARE * present as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_nothing_and_a_fault_its_level() {
        let plan = Stretches::new(225, 4.0, 240.0);
        let stretch = plan.all[3];
        let values = |from: usize, to: usize| -> Vec<f32> {
            (0..225)
                .map(|window| if (from..to).contains(&window) { -2.0 } else { 0.0 })
                .collect()
        };
        for (from, to, left) in [(10, 45, 0.0), (0, 225, 2.0), (stretch.start, stretch.end, 2.0)] {
            let values = values(from, to);
            let row = Row::new(&values, plan.block);
            assert_eq!(row.weakest_rest(stretch, plan.burst, -1.0), left, "{from} {to}");
        }
        let values = values(stretch.start, stretch.end);
        let row = Row::new(&values, plan.block);
        assert_eq!(row.reference(stretch, -2.0, &plan), Some(0.0));
        assert!(row.lasts(stretch, 0.0, -2.0) && !row.lasts(plan.all[20], 0.0, -2.0));
    }

    #[test]
    fn lengths_that_do_not_fit_are_left_out() {
        assert!(Stretches::new(10, 4.0, 240.0).all.is_empty());
        let plan = Stretches::new(70, 4.0, 240.0);
        assert_eq!(plan.lengths, [60]);
        assert_eq!(plan.all.last().map(|last| last.end), Some(70));
    }
}

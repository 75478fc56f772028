//! A row cut into stretches of constant level.
//!
//! PELT: R. Killick, P. Fearnhead, I. Eckley, "Optimal detection of changepoints with a linear computational cost",
//! Journal of the American Statistical Association 107 (2012); squared error, a fixed penalty a change. A single slow
//! step may be a stretch of its own, so that it does not pull at its neighbours. `O(n)` where changes are many, `O(n^2)`
//! at worst.

use std::ops::Range;

/// The stretches of `values` (all finite), in order; each change must save more than `penalty`.
pub(super) fn stretches(values: &[f64], penalty: f64) -> Vec<Range<usize>> {
    let count = values.len();
    if count == 0 {
        return Vec::new();
    }
    let (mut sums, mut squares) = (vec![0.0; count + 1], vec![0.0; count + 1]);
    for (at, value) in values.iter().enumerate() {
        sums[at + 1] = sums[at] + value;
        squares[at + 1] = squares[at] + value * value;
    }
    let mut least = vec![0.0; count + 1];
    least[0] = -penalty;
    let mut begins = vec![0; count + 1];
    let mut candidates = vec![0];
    let mut costs = Vec::new();
    for end in 1..=count {
        costs.clear();
        let (mut best, mut begin) = (f64::INFINITY, 0);
        for &from in &candidates {
            let sum = sums[end] - sums[from];
            let error = squares[end] - squares[from] - sum * sum / (end - from) as f64;
            let cost = least[from] + error;
            costs.push(cost);
            if cost < best {
                (best, begin) = (cost, from);
            }
        }
        least[end] = best + penalty;
        begins[end] = begin;
        // Who costs more than a change here never becomes the better beginning.
        let mut at = 0;
        candidates.retain(|_| {
            at += 1;
            costs[at - 1] <= least[end]
        });
        candidates.push(end);
    }
    let mut found = Vec::new();
    let mut end = count;
    while end > 0 {
        found.push(begins[end]..end);
        end = begins[end];
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(values: &[f64]) -> Vec<Range<usize>> {
        stretches(values, 0.01)
    }

    #[test]
    fn levels_are_told_apart() {
        let wave = |t: usize| 0.01 * ((t * 7 % 5) as f64 / 5.0 - 0.4);
        let level = |t: usize| if (20..30).contains(&t) { 0.5 } else { 0.0 };
        let values: Vec<f64> = (0..50).map(|t| level(t) + wave(t)).collect();
        assert_eq!(cut(&values), [0..20, 20..30, 30..50]);
        let even: Vec<f64> = (0..50).map(wave).collect();
        assert_eq!(cut(&even), std::slice::from_ref(&(0..50)));
    }

    #[test]
    fn one_step_may_be_a_stretch_and_all_steps_are_covered() {
        let mut values = vec![0.0; 9];
        values[4] = 1.0;
        assert_eq!(cut(&values), [0..4, 4..5, 5..9]);
        assert_eq!(cut(&[7.0]), std::slice::from_ref(&(0..1)));
        assert!(cut(&[]).is_empty());
    }
}

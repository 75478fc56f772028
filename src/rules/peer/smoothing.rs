//! Rows without gaps and without single spikes.

use std::borrow::Cow;

use crate::contract::constant::constants;

/// Cells to each side of one that tell whether it is a spike; the size of an array, so no number that can be moved.
const AROUND: usize = 3;

constants! {
    /// Fewest cells of a row that can be told from each other.
    LEAST: usize = 3;
}

/// A row whose missing cells lie on a line between their neighbours; `None` with hardly any value.
pub(super) fn filled(cells: &[f64]) -> Option<Cow<'_, [f64]>> {
    if cells.len() >= LEAST.get() && cells.iter().all(|cell| cell.is_finite()) {
        return Some(Cow::Borrowed(cells));
    }
    let known: Vec<usize> = (0..cells.len()).filter(|&at| cells[at].is_finite()).collect();
    if known.len() < LEAST.get() {
        return None;
    }
    let mut filled = cells.to_vec();
    let (first, last) = (known[0], known[known.len() - 1]);
    filled[..first].fill(cells[first]);
    filled[last..].fill(cells[last]);
    for pair in known.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        for (at, cell) in filled[from..to].iter_mut().enumerate().skip(1) {
            let share = at as f64 / (to - from) as f64;
            *cell = cells[from] + share * (cells[to] - cells[from]);
        }
    }
    Some(Cow::Owned(filled))
}

/// A row with cells far from the median of those around them drawn to it.
pub(super) fn without_spikes(cells: &[f64], limit: f64) -> Vec<f64> {
    (0..cells.len())
        .map(|at| {
            if !cells[at].is_finite() {
                return f64::NAN;
            }
            let around = &cells[at.saturating_sub(AROUND)..(at + AROUND + 1).min(cells.len())];
            let middle = middle(around);
            cells[at].clamp(middle - limit, middle + limit)
        })
        .collect()
}

/// The lower median of a few cells of which one at least is finite; without a vector, for it is asked for every cell.
fn middle(around: &[f64]) -> f64 {
    let mut sorted = [0.0; 2 * AROUND + 1];
    let mut count = 0;
    for &cell in around.iter().filter(|cell| cell.is_finite()) {
        let mut at = count;
        while at > 0 && sorted[at - 1] > cell {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = cell;
        count += 1;
    }
    sorted[count.saturating_sub(1) / 2]
}

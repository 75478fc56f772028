//! The order in which the timer rows of a batch are kept: those of a timer together, each with the code of its step.

use rustc_hash::FxHashMap;

use super::collected_rows::StepOfRun;

/// The place of each row's step in a list of the distinct ones.
pub(super) fn code_steps(iterations: &[i64], run_of: impl Fn(usize) -> u32) -> (Vec<u32>, Vec<StepOfRun>) {
    let mut steps: Vec<StepOfRun> = Vec::new();
    let mut known = FxHashMap::<StepOfRun, u32>::default();
    let mut above = 0;
    let mut codes = Vec::with_capacity(iterations.len());
    for (row, &iteration) in iterations.iter().enumerate() {
        let step = StepOfRun {
            run: run_of(row),
            iteration,
        };
        if steps.get(above as usize) != Some(&step) {
            above = *known.entry(step).or_insert_with(|| {
                steps.push(step);
                steps.len() as u32 - 1
            });
        }
        codes.push(above);
    }
    (codes, steps)
}

/// The order that brings rows of a timer together, in which they else stay; none where they are in long pieces as it is.
/// Beside it the timer and number of rows of each piece.
pub(super) fn by_timer(timers: &[u32], words: usize) -> (Option<Vec<u32>>, Vec<(u32, usize)>) {
    let pieces: Vec<(u32, usize)> = timers
        .chunk_by(|a, b| a == b)
        .map(|piece| (piece[0], piece.len()))
        .collect();
    if pieces.len() <= words {
        return (None, pieces);
    }
    let mut begins = vec![0usize; words + 1];
    timers.iter().for_each(|&timer| begins[timer as usize + 1] += 1);
    let pieces = (0..words).map(|timer| (timer as u32, begins[timer + 1]));
    let pieces = pieces.filter(|&(_, rows)| rows > 0).collect();
    for timer in 0..words {
        begins[timer + 1] += begins[timer];
    }
    let mut order = vec![0; timers.len()];
    for (row, &timer) in timers.iter().enumerate() {
        order[begins[timer as usize]] = row as u32;
        begins[timer as usize] += 1;
    }
    (Some(order), pieces)
}

pub(super) fn in_order<T: Copy>(column: Vec<T>, order: &Option<Vec<u32>>) -> Vec<T> {
    match order {
        None => column,
        Some(order) => order.iter().map(|&row| column[row as usize]).collect(),
    }
}

//! Minder's letter: a candidate a window, by summed distances; named when it stays the candidate.
//!
//! D_i is the sum of a machine's distances to all others. The paper divides it so that it does not grow with the number
//! of machines and gives no formula; here it is the distance from the median of the D_i in scaled median absolute
//! deviations. With more than [`EXACT_MACHINES`] machines the distances go to that many of them, evenly spaced: the sum is
//! then an estimate from a sample, off by about 1 / sqrt(256) of the spread of the distances (a test says how near).

use rayon::prelude::*;

use super::{MachineScore, MetricScores, median};

/// Up to so many machines D_i is exact.
pub const EXACT_MACHINES: usize = 256;
const NORMAL_MAD: f32 = 1.4826;
/// Distances below this share of the scaled range are rounding.
const LEAST_DISTANCE: f32 = 1e-3;

/// Length of a difference of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// Root of the summed squares.
    Euclidean,
    /// Summed sizes.
    Manhattan,
    /// Largest size.
    Chebyshev,
}

/// A vector a window and machine; NaN where it is missing.
pub type Vectors<const D: usize> = Vec<Vec<[f32; D]>>;

/// Sum of distances from each of the present machines to all of them.
#[must_use]
pub fn dissimilarities<const D: usize>(vectors: &[[f32; D]], distance: Distance) -> Vec<f32> {
    let every = vectors.len().div_ceil(EXACT_MACHINES).max(1);
    let peers: Vec<&[f32; D]> = vectors.iter().step_by(every).collect();
    let whole = vectors.len() as f32 / peers.len().max(1) as f32;
    vectors
        .iter()
        .map(|own| {
            let sum: f32 = peers.iter().map(|peer| length(own, peer, distance)).sum();
            sum * whole
        })
        .collect()
}

fn length<const D: usize>(a: &[f32; D], b: &[f32; D], distance: Distance) -> f32 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    match distance {
        Distance::Euclidean => differences.map(|size| size * size).sum::<f32>().sqrt(),
        Distance::Manhattan => differences.sum(),
        Distance::Chebyshev => differences.fold(0.0, f32::max),
    }
}

/// Scores every machine of a metric: the least score with which it stays the candidate for `long` windows.
#[must_use]
pub fn judge<const D: usize>(vectors: &Vectors<D>, distance: Distance, long: usize) -> MetricScores {
    let machines = vectors.len();
    let count = vectors.first().map_or(0, Vec::len);
    let mut scores = MetricScores {
        machines: vec![MachineScore::default(); machines],
        median: vec![f32::NAN; count],
        by_stretch: Vec::new(),
    };
    if machines < 3 || count < long || long == 0 {
        return scores;
    }
    let candidates: Vec<Option<(usize, f32)>> = (0..count)
        .into_par_iter()
        .map(|window| candidate(vectors, window, distance))
        .collect();
    for start in 0..=count - long {
        let Some((machine, _)) = candidates[start] else {
            continue;
        };
        let stretch = &candidates[start..start + long];
        let least = stretch
            .iter()
            .try_fold(f32::INFINITY, |least, candidate| match candidate {
                Some((same, score)) if *same == machine => Some(least.min(*score)),
                _ => None,
            });
        let best = &mut scores.machines[machine];
        if let Some(least) = least.map(f64::from)
            && least > best.score
        {
            *best = MachineScore {
                score: least,
                first: start,
                end: start + long,
                ..MachineScore::default()
            };
        }
    }
    scores
}

fn candidate<const D: usize>(vectors: &Vectors<D>, window: usize, distance: Distance) -> Option<(usize, f32)> {
    let present: Vec<usize> = (0..vectors.len())
        .filter(|&machine| !vectors[machine][window][0].is_nan())
        .collect();
    if present.len() < 3 {
        return None;
    }
    let here: Vec<[f32; D]> = present.iter().map(|&machine| vectors[machine][window]).collect();
    let sums = dissimilarities(&here, distance);
    let middle = median(&mut sums.clone());
    let mut off: Vec<f32> = sums.iter().map(|sum| (sum - middle).abs()).collect();
    let scale = NORMAL_MAD * median(&mut off) + LEAST_DISTANCE * present.len() as f32;
    let (place, &largest) = sums
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
    Some((present[place], (largest - middle) / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_peers_is_near_the_whole_sum() {
        let vectors: Vec<[f32; 2]> = (0..2_000_u32)
            .map(|place| {
                let part = |prime: u32| (place.wrapping_mul(prime) >> 8) as f32 % 1000.0 / 1000.0;
                [part(2_654_435_761), part(2_246_822_519)]
            })
            .collect();
        let quick = dissimilarities(&vectors, Distance::Euclidean);
        for (own, quick) in vectors.iter().zip(quick).step_by(37) {
            let exact: f32 = vectors.iter().map(|peer| length(own, peer, Distance::Euclidean)).sum();
            assert!((quick / exact - 1.0).abs() < 0.05, "{quick} {exact}");
        }
    }

    #[test]
    fn who_stays_the_candidate_is_scored_and_who_does_not_is_not() {
        let vectors: Vectors<1> = (0..5_u32)
            .map(|machine| {
                (0..100_u32)
                    .map(|window| {
                        let wave = ((machine * 31 + window * 17) % 23) as f32 / 100.0;
                        let off = machine == 2 && window >= 40 || machine == 4 && window < 20;
                        [wave + if off { 3.0 } else { 0.0 }]
                    })
                    .collect()
            })
            .collect();
        let scores = judge(&vectors, Distance::Euclidean, 50);
        assert!(scores.machines[2].score > 3.0, "{scores:?}");
        assert!(
            (0..5)
                .filter(|&machine| machine != 2)
                .all(|machine| scores.machines[machine].score == 0.0)
        );
    }
}

//! Gaussian mixture of two components; a rank belongs to the one with the higher responsibility.
//!
//! EM with log-sum-exp, started from single k-means fits (`Space::two_means`, as many as k-means itself has starts; those that
//! agree run once), at most 100 iterations, until the mean log-likelihood gains less than `1e-3`; `1e-6` is added to every variance.
//! The start with the highest last lower bound wins and is kept even when it did not converge.
//! Source: scikit-learn `GaussianMixture(2, n_init=3, reg_covar=1e-6)`; Bishop, *Pattern Recognition and Machine Learning*, 9.2.
//!
//! Tuned over the covariance types, see [`Covariance`]. The four columns have rank three (range = max - min), so
//! full and tied rest on the added `1e-6` in one direction, as they do in scikit-learn: it moves the likelihood by a
//! constant and leaves the labels meaningful.
//!
//! Cost `O(n)` an iteration. n < 2 or a single distinct row: no candidates. A covariance that is not positive
//! definite in floating point drops that type from the grid. Ties go to component 0.

mod covariance;

use rayon::prelude::*;

pub use covariance::Covariance;
use covariance::Density;

use super::space::Space;
use super::{Algorithm, Clustering, Row};

const MAX_ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-3;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Gmm;

impl Algorithm for Gmm {
    fn name(&self) -> &'static str {
        "gmm"
    }

    fn candidates(&self, space: &Space) -> Vec<Clustering> {
        let starts = starts(space);
        Covariance::ALL
            .par_iter()
            .filter_map(|&covariance| {
                let mixture = best(space, covariance, &starts)?;
                Some(space.clustering(&mixture.labels, format!("covariance={}", covariance.name())))
            })
            .collect()
    }
}

/// A fitted mixture.
#[derive(Debug, Clone)]
pub struct Mixture {
    /// The component of each point of the space.
    pub labels: Vec<u32>,
    /// Mean log-likelihood of a rank under the fitted parameters.
    pub log_likelihood: f64,
    /// Whether EM gained less than its tolerance within its iterations.
    pub converged: bool,
    lower_bound: f64,
}

/// The best mixture of one covariance type; `None` when there is nothing to fit (see the module).
pub fn fit(space: &Space, covariance: Covariance) -> Option<Mixture> {
    best(space, covariance, &starts(space))
}

fn best(space: &Space, covariance: Covariance, starts: &[Vec<u32>]) -> Option<Mixture> {
    let mut best: Option<Mixture> = None;
    for start in starts {
        let mixture = expectation_maximisation(space, covariance, start)?;
        if best
            .as_ref()
            .is_none_or(|known| mixture.lower_bound > known.lower_bound)
        {
            best = Some(mixture);
        }
    }
    best
}

/// Distinct k-means partitions; the first point is always in cluster 0.
fn starts(space: &Space) -> Vec<Vec<u32>> {
    let mut starts: Vec<Vec<u32>> = Vec::new();
    if space.points().len() < 2 {
        return starts;
    }
    for fit in space.two_means() {
        let mut labels = fit.labels.clone();
        let first = labels[0];
        labels.iter_mut().for_each(|label| *label ^= first);
        if !starts.contains(&labels) {
            starts.push(labels);
        }
    }
    starts
}

fn expectation_maximisation(space: &Space, covariance: Covariance, start: &[u32]) -> Option<Mixture> {
    let (points, weights) = (space.points(), space.weights());
    // The responsibility of component 1; component 0 has the rest.
    let mut share: Vec<f64> = start.iter().map(|&label| f64::from(label)).collect();
    let mut density = maximisation(points, weights, &share, covariance)?;
    let mut lower_bound = f64::NEG_INFINITY;
    let mut converged = false;
    for _ in 0..MAX_ITERATIONS {
        let bound = expectation(points, weights, &density, &mut share);
        density = maximisation(points, weights, &share, covariance)?;
        converged = (bound - lower_bound).abs() < TOLERANCE;
        lower_bound = bound;
        if converged {
            break;
        }
    }
    let log_likelihood = expectation(points, weights, &density, &mut share);
    if !log_likelihood.is_finite() || !lower_bound.is_finite() {
        return None;
    }
    Some(Mixture {
        labels: share.iter().map(|&share| u32::from(share > 0.5)).collect(),
        log_likelihood,
        converged,
        lower_bound,
    })
}

/// Fills in the responsibilities; the mean log-likelihood.
fn expectation(points: &[Row], weights: &[f64], density: &[Density; 2], share: &mut [f64]) -> f64 {
    let (mut total, mut weight_sum) = (0.0, 0.0);
    for ((point, &weight), share) in points.iter().zip(weights).zip(share) {
        let (zero, one) = (density[0].log(point), density[1].log(point));
        let lead = zero - one;
        let smaller = (-lead.abs()).exp();
        total += weight * (zero.max(one) + smaller.ln_1p());
        weight_sum += weight;
        *share = if lead > 0.0 {
            smaller / (1.0 + smaller)
        } else {
            1.0 / (1.0 + smaller)
        };
        if lead == 0.0 {
            *share = 0.5;
        }
    }
    total / weight_sum
}

fn maximisation(points: &[Row], weights: &[f64], share: &[f64], covariance: Covariance) -> Option<[Density; 2]> {
    let mut mass = [10.0 * f64::EPSILON; 2];
    let mut means = [[0.0; 4]; 2];
    for ((point, &weight), &share) in points.iter().zip(weights).zip(share) {
        let parts = [weight * (1.0 - share), weight * share];
        for component in 0..2 {
            mass[component] += parts[component];
            for axis in 0..4 {
                means[component][axis] += parts[component] * point[axis];
            }
        }
    }
    for component in 0..2 {
        means[component] = means[component].map(|sum| sum / mass[component]);
    }
    covariance.densities(points, weights, share, mass, means)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_blobs_are_told_apart_by_every_type() {
        let rows: Vec<Row> = (0..40)
            .map(|i| {
                let noise = f64::from(i * 7 % 11) / 10.0;
                let base = if i % 4 == 0 { 20.0 } else { 0.0 };
                [base + noise, base - noise, noise * noise, base]
            })
            .collect();
        let space = Space::new(rows);
        for covariance in Covariance::ALL {
            let mixture = fit(&space, covariance).expect("two blobs can be fitted");
            let labels = space.clustering(&mixture.labels, String::new()).labels;
            assert!(
                (0..40).all(|i| (labels[i] == labels[0]) == (i % 4 == 0)),
                "{covariance:?}"
            );
            assert!(mixture.converged);
        }
    }

    #[test]
    fn nothing_to_fit_is_no_candidate() {
        for n in 0..4 {
            assert!(Gmm.candidates(&Space::new(vec![[1.0; 4]; n])).is_empty());
        }
    }
}

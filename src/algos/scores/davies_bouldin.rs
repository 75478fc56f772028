//! Davies-Bouldin index: for each cluster the worst ratio of two spreads to the distance of the means, averaged.
//! `O(n + k^2)`.
//!
//! 0 when all spreads, or all distances of means, are below `1e-8`; means that coincide count as infinitely far.
//! Source: Davies & Bouldin 1979; scikit-learn `davies_bouldin_score`.

use super::Centroids;
use crate::algos::Space;
use crate::algos::distance::squared_distance;

const NEGLIGIBLE: f64 = 1e-8;

pub(super) fn index(space: &Space, labels: &[u32], centroids: &Centroids) -> f64 {
    let mut spread = vec![0.0; centroids.means.len()];
    for ((point, weight), &label) in space.points().iter().zip(space.weights()).zip(labels) {
        let label = label as usize;
        spread[label] += weight * squared_distance(point, &centroids.means[label]).sqrt();
    }
    for (spread, weight) in spread.iter_mut().zip(&centroids.weights) {
        *spread /= weight;
    }
    let mut farthest = 0.0f64;
    let mut total = 0.0;
    for (i, mean) in centroids.means.iter().enumerate() {
        let mut worst = 0.0f64;
        for (j, other) in centroids.means.iter().enumerate() {
            let distance = squared_distance(mean, other).sqrt();
            farthest = farthest.max(distance);
            if distance > 0.0 {
                worst = worst.max((spread[i] + spread[j]) / distance);
            }
        }
        total += worst;
    }
    if farthest <= NEGLIGIBLE || spread.iter().all(|&spread| spread <= NEGLIGIBLE) {
        return 0.0;
    }
    total / centroids.means.len() as f64
}

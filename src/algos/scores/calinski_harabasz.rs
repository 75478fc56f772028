//! Calinski-Harabasz index: dispersion between the cluster means over dispersion within. `O(n)`.
//!
//! 1 when nothing is dispersed within. Source: Calinski & Harabasz 1974; scikit-learn `calinski_harabasz_score`.

use super::Centroids;
use crate::algos::Space;
use crate::algos::distance::squared_distance;

pub(super) fn index(space: &Space, labels: &[u32], centroids: &Centroids) -> f64 {
    let n = space.len() as f64;
    let clusters = centroids.means.len() as f64;
    let mut mean = [0.0; 4];
    for (point, weight) in space.points().iter().zip(space.weights()) {
        for axis in 0..4 {
            mean[axis] += weight * point[axis];
        }
    }
    let mean = mean.map(|sum| sum / n);
    let between: f64 = centroids
        .means
        .iter()
        .zip(&centroids.weights)
        .map(|(centroid, weight)| weight * squared_distance(centroid, &mean))
        .sum();
    let within: f64 = space
        .points()
        .iter()
        .zip(space.weights())
        .zip(labels)
        .map(|((point, weight), &label)| weight * squared_distance(point, &centroids.means[label as usize]))
        .sum();
    if within == 0.0 {
        return 1.0;
    }
    between * (n - clusters) / (within * (clusters - 1.0))
}

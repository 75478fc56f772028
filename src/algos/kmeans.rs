//! k-means: the ranks fall into k groups around their means; k = 2, 3, 4.
//!
//! At least ten starts by greedy k-means++ (Arthur & Vassilvitskii 2007, with scikit-learn's `2 + ln k` trials a centre), Lloyd's
//! iteration until no label changes, at most 300 times; the lowest inertia wins, the earlier start on a tie.
//! Source: scikit-learn `KMeans(n_init=10)`, whose inertia it exceeds on none of the golden matrices: small sets get up to 100 starts
//! (ten missed the optimum by up to 18 % on 32 to 64 ranks), and there is no tolerance that stops a start early.
//!
//! Cost `O(n k)` an early iteration of a start; late ones skip what cannot change (`lloyd.rs`). k must be below n and
//! at most the number of distinct rows; n < 3 gives no candidate.
//! Ties in distance go to the earlier centre. Generators are seeded by the start's number alone and draw from the
//! points of [`Space`], so that the order of the ranks plays no part.
//!
//! linfa-clustering 0.8 is the cross-check in the tests and not the method: with its ten runs, read through `predict`, its
//! inertia was up to 1.06 times ours on 36 fits, and it takes no weights for merged equal rows.

use super::kmeans_fits::{best, fit};
use super::space::Space;
use super::{Algorithm, Clustering};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct KMeans;

impl Algorithm for KMeans {
    fn name(&self) -> &'static str {
        "kmeans"
    }

    fn candidates(&self, space: &Space) -> Vec<Clustering> {
        (2..=4)
            .filter(|&k| k < space.len() && k <= space.points().len())
            .map(|k| {
                let labels = match k {
                    2 => best(space.two_means().iter().cloned()).labels,
                    _ => fit(space.points(), space.weights(), k).labels,
                };
                space.clustering(&labels, format!("k={k}"))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algos::distance::squared_distance;
    use crate::algos::tests::timer_rows;
    use crate::algos::{Row, lloyd};

    fn inertia_of(rows: &[Row], labels: &[usize], k: usize) -> f64 {
        let mut sums = vec![([0.0; 4], 0.0); k];
        for (row, &label) in rows.iter().zip(labels) {
            sums[label].1 += 1.0;
            for axis in 0..4 {
                sums[label].0[axis] += row[axis];
            }
        }
        let means: Vec<Row> = sums.iter().map(|(sum, count)| sum.map(|value| value / count)).collect();
        rows.iter()
            .zip(labels)
            .map(|(row, &label)| squared_distance(row, &means[label]))
            .sum()
    }

    /// linfa-clustering with its ten runs, read through `predict`: never better, on these 36 fits at most 6 % worse. What it
    /// is worse by is its starts, plain k-means++ with one trial a centre; both are seeded, so the figures are the same each time.
    #[test]
    fn linfa_agrees() {
        use linfa::DatasetBase;
        use linfa::traits::{Fit, Predict};
        let (mut best, mut worst) = (f64::INFINITY, 0.0f64);
        for seed in 0..12 {
            let n = [16, 32, 64, 200][seed as usize % 4];
            let rows = timer_rows(n, 100 + seed, None);
            let space = Space::new(rows.clone());
            let flat: Vec<f64> = rows.iter().flatten().copied().collect();
            let records = ndarray::Array2::from_shape_vec((n, 4), flat).expect("n rows of 4");
            for k in 2..=4 {
                let ours = fit(space.points(), space.weights(), k).inertia;
                let model = linfa_clustering::KMeans::params(k)
                    .tolerance(1e-9)
                    .fit(&DatasetBase::from(records.clone()))
                    .expect("finite rows");
                let labels: Vec<usize> = model.predict(&records).to_vec();
                let ratio = inertia_of(&rows, &labels, k) / ours;
                best = best.min(ratio);
                worst = worst.max(ratio);
            }
        }
        assert!(best > 1.0 - 1e-9, "linfa is better: {best} times our inertia");
        assert!(worst < 1.07, "{worst}");
    }

    #[test]
    fn weights_count_as_repeated_rows() {
        let points = [[0.0; 4], [1.0; 4], [10.0; 4]];
        let heavy = fit(&points, &[1.0, 1.0, 5.0], 2);
        assert_eq!(heavy.labels[0], heavy.labels[1]);
        assert_ne!(heavy.labels[0], heavy.labels[2]);
        assert!((heavy.inertia - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_lost_cluster_moves_to_the_farthest_point() {
        let points = [[0.0; 4], [1.0; 4], [9.0; 4]];
        let centres = vec![[0.5; 4], [100.0; 4]];
        let partition = lloyd::run(&points, &[1.0; 3], centres);
        assert_eq!(partition.labels, [0, 0, 1]);
    }
}

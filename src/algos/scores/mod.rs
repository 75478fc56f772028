//! How good a labelling is: the three scores that tuning compares.
//!
//! All are on Euclidean distances and defined for 2 to n - 1 clusters, as in scikit-learn.

pub mod calinski_harabasz;
pub mod davies_bouldin;
pub mod silhouette;

use super::{Clustering, Row, Space};

/// The scores of one labelling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Mean silhouette, -1 (wrong) to 1 (compact and far apart).
    pub silhouette: f64,
    /// Between over within dispersion, 0 and up; higher is better.
    pub calinski_harabasz: f64,
    /// Mean over clusters of the worst (spread + spread) / distance; 0 and up, lower is better.
    pub davies_bouldin: f64,
}

impl Scores {
    /// Whether this beats `other`: silhouette first, then Calinski-Harabasz, then Davies-Bouldin.
    pub fn beats(&self, other: &Self) -> bool {
        self.silhouette
            .total_cmp(&other.silhouette)
            .then(self.calinski_harabasz.total_cmp(&other.calinski_harabasz))
            .then(other.davies_bouldin.total_cmp(&self.davies_bouldin))
            .is_gt()
    }
}

/// The scores of each clustering; `None` for fewer than 2 or not fewer than n clusters.
pub fn score(space: &Space, clusterings: &[Clustering]) -> Vec<Option<Scores>> {
    let scorable = |clustering: &Clustering| (2..space.len()).contains(&clustering.clusters);
    let of_points: Vec<Option<Vec<u32>>> = clusterings
        .iter()
        .map(|clustering| scorable(clustering).then(|| space.point_labels(&clustering.labels)).flatten())
        .collect();
    let merged: Vec<(&[u32], usize)> = of_points
        .iter()
        .zip(clusterings)
        .filter_map(|(labels, clustering)| Some((labels.as_deref()?, clustering.clusters)))
        .collect();
    let mut silhouettes = silhouette::silhouettes(space, &merged).into_iter();
    of_points
        .iter()
        .zip(clusterings)
        .map(|(labels, clustering)| match labels {
            Some(labels) => Some(scores_of(space, labels, clustering.clusters, silhouettes.next()?)),
            None if scorable(clustering) => score_unmerged(space, clustering),
            None => None,
        })
        .collect()
}

/// For labels that tell equal rows apart.
fn score_unmerged(space: &Space, clustering: &Clustering) -> Option<Scores> {
    let space = Space::without_merging(space.rows().to_vec());
    let labels = space.point_labels(&clustering.labels)?;
    let silhouette = *silhouette::silhouettes(&space, &[(&labels, clustering.clusters)]).first()?;
    Some(scores_of(&space, &labels, clustering.clusters, silhouette))
}

fn scores_of(space: &Space, labels: &[u32], clusters: usize, silhouette: f64) -> Scores {
    let centroids = Centroids::of(space, labels, clusters);
    Scores {
        silhouette,
        calinski_harabasz: calinski_harabasz::index(space, labels, &centroids),
        davies_bouldin: davies_bouldin::index(space, labels, &centroids),
    }
}

/// Means and weights of the clusters.
pub(crate) struct Centroids {
    pub(crate) means: Vec<Row>,
    pub(crate) weights: Vec<f64>,
}

impl Centroids {
    pub(crate) fn of(space: &Space, labels: &[u32], clusters: usize) -> Self {
        let mut means = vec![[0.0; 4]; clusters];
        let mut weights = vec![0.0; clusters];
        for ((point, &weight), &label) in space.points().iter().zip(space.weights()).zip(labels) {
            weights[label as usize] += weight;
            for axis in 0..4 {
                means[label as usize][axis] += weight * point[axis];
            }
        }
        for (mean, &weight) in means.iter_mut().zip(&weights) {
            mean.iter_mut().for_each(|value| *value /= weight);
        }
        Self { means, weights }
    }
}

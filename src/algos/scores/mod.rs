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
        .map(|clustering| {
            let labels = scorable(clustering)
                .then(|| space.point_labels(&clustering.labels))
                .flatten()?;
            // Numbered in point order, so that sums over clusters do not depend on rank order either.
            Some(Clustering::new(&labels, String::new()).labels)
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rayon::prelude::*;

    /// The definition, over all pairs.
    fn silhouette_by_pairs(rows: &[Row], labels: &[u32], clusters: usize) -> f64 {
        let distance = |a: &Row, b: &Row| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
        let size = |cluster| labels.iter().filter(|&&label| label as usize == cluster).count() as f64;
        let value = |i: usize| {
            let own = labels[i] as usize;
            let sum = |cluster: usize| -> f64 {
                let members = (0..rows.len()).filter(|&j| labels[j] as usize == cluster);
                members.map(|j| distance(&rows[i], &rows[j])).sum()
            };
            if size(own) == 1.0 {
                return 0.0;
            }
            let within = sum(own) / (size(own) - 1.0);
            let others = (0..clusters).filter(|&cluster| cluster != own);
            let between = others
                .map(|cluster| sum(cluster) / size(cluster))
                .fold(f64::INFINITY, f64::min);
            let larger = within.max(between);
            if larger > 0.0 { (between - within) / larger } else { 0.0 }
        };
        (0..rows.len()).map(value).sum::<f64>() / rows.len() as f64
    }

    proptest! {
        #[test]
        fn silhouette_equals_its_definition(
            set in prop::collection::vec(
                (prop::array::uniform4(prop_oneof![(-3i32..3).prop_map(f64::from), Just(1e7), -1.0f64..1.0]), 0u32..4),
                3..40,
            )
        ) {
            let rows: Vec<Row> = set.iter().map(|member| member.0).collect();
            let labels: Vec<u32> = set.iter().map(|member| member.1).collect();
            let clustering = Clustering::new(&labels, String::new());
            let space = Space::new(rows.clone());
            match score(&space, std::slice::from_ref(&clustering))[0] {
                Some(scores) => {
                    let direct = silhouette_by_pairs(&rows, &clustering.labels, clustering.clusters);
                    prop_assert!((scores.silhouette - direct).abs() < 1e-9, "{} {direct}", scores.silhouette);
                }
                None => prop_assert!(clustering.clusters < 2 || clustering.clusters >= rows.len()),
            }
        }
    }

    /// Above the exact limit: how far the silhouette over cells is from the definition, at n = 4,096.
    #[test]
    fn cells_come_near_the_exact_silhouette() {
        let rows = crate::algos::tests::timer_rows(4_096, 0, None);
        let space = Space::new(rows.clone());
        let errors = crate::algos::registry().par_iter().map(|algorithm| {
            let mut candidates = algorithm.candidates(&space);
            candidates.retain(|candidate| (2..50).contains(&candidate.clusters));
            candidates.truncate(1);
            let scores = score(&space, &candidates);
            let error = |(scores, candidate): (&Option<Scores>, &Clustering)| {
                let direct = silhouette_by_pairs(&rows, &candidate.labels, candidate.clusters);
                (scores.expect("two clusters or more").silhouette - direct).abs()
            };
            scores.iter().zip(&candidates).map(error).fold(0.0, f64::max)
        });
        let worst = errors.reduce(|| 0.0, f64::max);
        assert!(worst < 0.01, "{worst}");
    }
}

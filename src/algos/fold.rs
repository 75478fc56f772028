//! From clusters to slow ranks, the same way for every algorithm (noise is a cluster like any other).

use super::scores::Centroids;
use super::space::Space;
use super::{Clustering, Row, kmeans};

/// Whether each rank is slow: more than two clusters are folded into two by k-means over their centres (each counts once,
/// whatever its size), and the group whose mean of `raw_means` is higher is slow.
///
/// `raw_means` holds each rank's unscaled mean, by rank. Nobody is slow when there are fewer than two groups. When both
/// groups have the same mean, the one whose first row in lexicographic order comes first is slow.
pub fn slow_ranks(space: &Space, raw_means: &[f64], clustering: &Clustering) -> Vec<bool> {
    let nobody = vec![false; space.len()];
    let group_of_cluster = match clustering.clusters {
        0 | 1 => return nobody,
        2 => vec![0, 1],
        _ => match fold(space, clustering) {
            Some(groups) => groups,
            None => return nobody,
        },
    };
    let mut ranks: Vec<usize> = (0..space.len()).collect();
    // Sums in point order; equal rows by their raw mean, so that rank order plays no part.
    ranks.sort_by(|&a, &b| {
        space.point_of()[a]
            .cmp(&space.point_of()[b])
            .then(raw_means[a].total_cmp(&raw_means[b]))
    });
    let group = |rank: usize| group_of_cluster[clustering.labels[rank] as usize];
    let mut sums = [(0.0, 0.0); 2];
    for &rank in &ranks {
        let (sum, count) = &mut sums[group(rank)];
        *sum += raw_means[rank];
        *count += 1.0;
    }
    let mean = |group: usize| sums[group].0 / sums[group].1;
    let first = ranks.first().map_or(0, |&rank| group(rank));
    let slow = if mean(1 - first) > mean(first) {
        1 - first
    } else {
        first
    };
    (0..space.len()).map(|rank| group(rank) == slow).collect()
}

/// The group, 0 or 1, of each cluster; `None` when all centres coincide.
fn fold(space: &Space, clustering: &Clustering) -> Option<Vec<usize>> {
    let centres: Vec<Row> = match space.point_labels(&clustering.labels) {
        Some(labels) => Centroids::of(space, &labels, clustering.clusters).means,
        None => {
            let unmerged = Space::without_merging(space.rows().to_vec());
            let labels = unmerged.point_labels(&clustering.labels)?;
            Centroids::of(&unmerged, &labels, clustering.clusters).means
        }
    };
    let folded = Space::new(centres);
    if folded.points().len() < 2 {
        return None;
    }
    let labels = kmeans::fit(folded.points(), folded.weights(), 2).labels;
    let groups: Vec<usize> = folded
        .point_of()
        .iter()
        .map(|&point| labels[point as usize] as usize)
        .collect();
    groups.contains(&1).then_some(groups)
}

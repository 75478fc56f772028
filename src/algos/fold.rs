//! From clusters to slow ranks, the same way for every algorithm (noise is a cluster like any other).

use super::scores::Centroids;
use super::space::Space;
use super::{Clustering, Row, kmeans_fits};

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
    let labels = kmeans_fits::fit(folded.points(), folded.weights(), 2).labels;
    let groups: Vec<usize> = folded
        .point_of()
        .iter()
        .map(|&point| labels[point as usize] as usize)
        .collect();
    groups.contains(&1).then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space_of(means: &[f64]) -> Space {
        Space::new(means.iter().map(|&mean| [mean; 4]).collect())
    }

    #[test]
    fn the_group_with_the_higher_raw_mean_is_slow() {
        let means = [0.0, 0.1, 9.0, 0.2];
        let space = space_of(&means);
        let two = Clustering::new(&[0, 0, 1, 0], String::new());
        assert_eq!(slow_ranks(&space, &means, &two), [false, false, true, false]);
        let negated: Vec<f64> = means.iter().map(|mean| -mean).collect();
        assert_eq!(slow_ranks(&space, &negated, &two), [true, true, false, true]);
    }

    #[test]
    fn many_clusters_are_folded_by_their_centres() {
        let means = [0.0, 0.1, 1.0, 20.0, 21.0];
        let five = Clustering::new(&[0, 1, 2, 3, 4], String::new());
        let slow = slow_ranks(&space_of(&means), &means, &five);
        assert_eq!(slow, [false, false, false, true, true]);
    }

    #[test]
    fn one_group_has_nobody_slow() {
        let one = Clustering::new(&[0, 0, 0], String::new());
        assert_eq!(
            slow_ranks(&space_of(&[1.0, 2.0, 3.0]), &[1.0, 2.0, 3.0], &one),
            [false; 3]
        );
        // Equal rows torn apart: their centres coincide.
        let torn = Clustering::new(&[0, 1, 2], String::new());
        assert_eq!(slow_ranks(&space_of(&[1.0; 3]), &[1.0; 3], &torn), [false; 3]);
        assert!(slow_ranks(&space_of(&[]), &[], &Clustering::new(&[], String::new())).is_empty());
    }
}

//! The best labelling of an algorithm's grid.

use super::scores::{Scores, score};
use super::{Algorithm, Clustering, Space};

/// The candidate with the highest silhouette, then the higher Calinski-Harabasz, then the lower Davies-Bouldin score;
/// the first of the grid on a full tie. Identical labellings are scored once.
///
/// One with fewer than 2 or not fewer than n clusters has no score and is never chosen over a scored one.
/// `None` when no candidate has two clusters.
pub fn tune(algorithm: &dyn Algorithm, space: &Space) -> Option<Clustering> {
    let mut distinct: Vec<Clustering> = Vec::new();
    for candidate in algorithm.candidates(space) {
        if candidate.clusters >= 2 && distinct.iter().all(|known| known.labels != candidate.labels) {
            distinct.push(candidate);
        }
    }
    let scores = score(space, &distinct);
    let mut best: Option<Clustering> = None;
    for (candidate, scores) in distinct.into_iter().zip(scores) {
        let better = match (&best, &scores) {
            (None, _) => true,
            (Some(best), Some(scores)) => best.scores.as_ref().is_none_or(|known: &Scores| scores.beats(known)),
            (Some(_), None) => false,
        };
        if better {
            best = Some(Clustering { scores, ..candidate });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Vec<Vec<u32>>);

    impl Algorithm for Fixed {
        fn name(&self) -> &'static str {
            "fixed"
        }

        fn candidates(&self, _: &Space) -> Vec<Clustering> {
            let named = |(i, labels): (usize, &Vec<u32>)| Clustering::new(labels, i.to_string());
            self.0.iter().enumerate().map(named).collect()
        }
    }

    #[test]
    fn the_highest_silhouette_wins_and_the_first_of_equals() {
        let space = Space::new([0.0, 0.1, 5.0, 5.1].map(|value| [value; 4]).to_vec());
        let choose = |labels: &[[u32; 4]]| tune(&Fixed(labels.iter().map(|l| l.to_vec()).collect()), &space);
        let best = choose(&[[0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]]).expect("two clusters");
        assert_eq!(best.parameters, "1");
        assert!(best.scores.expect("it is scored").silhouette > 0.9);
        assert_eq!(choose(&[[0, 0, 0, 0]]), None);
        let unscored = choose(&[[0, 1, 2, 3]]).expect("four clusters are clusters");
        assert_eq!(unscored.scores, None);
        let poor = choose(&[[0, 1, 2, 3], [0, 1, 1, 0]]).expect("two clusters");
        assert_eq!(poor.parameters, "1", "a scored labelling is never passed over");
    }
}

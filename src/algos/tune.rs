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
        if candidate.clusters >= 2
            && distinct
                .iter()
                .all(|known| known.labels != candidate.labels)
        {
            distinct.push(candidate);
        }
    }
    let scores = score(space, &distinct);
    let mut best: Option<Clustering> = None;
    for (candidate, scores) in distinct.into_iter().zip(scores) {
        let better = match (&best, &scores) {
            (None, _) => true,
            (Some(best), Some(scores)) => best
                .scores
                .as_ref()
                .is_none_or(|known: &Scores| scores.beats(known)),
            (Some(_), None) => false,
        };
        if better {
            best = Some(Clustering {
                scores,
                ..candidate
            });
        }
    }
    best
}

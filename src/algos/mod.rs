//! Six ways to split the ranks of one timer, and the choice of the best labelling of each.
//!
//! Every algorithm offers a grid of labellings ([`Algorithm::candidates`]); [`tune()`] scores them and keeps the best;
//! [`slow_ranks`] folds its clusters into two and calls the group with the higher raw mean slow.
//! All of it is deterministic and independent of thread count and of the order of the ranks (see [`Space`]).
//!
//! In: a row of features a rank. Out: slow or fast, with scores. May use: nothing of this crate.
//! Reference for every behaviour: scikit-learn; `tests/scikit_learn.rs` holds us to it.
#![expect(
    clippy::needless_range_loop,
    reason = "the four columns of several rows are indexed side by side"
)]

pub mod cells;
pub mod dbscan;
mod distance;
pub mod fold;
pub mod fuzzy;
pub mod gmm;
pub mod hierarchical;
pub mod kdtree;
pub mod kmeans;
pub mod kmeans_fits;
pub mod linkage;
pub mod lloyd;
pub mod mean_shift;
pub mod scores;
pub mod space;
pub mod tune;

pub use fold::slow_ranks;
pub use scores::Scores;
pub use space::Space;
pub use tune::tune;

/// One row a rank: scaled [min, max, range, mean].
pub type Row = [f64; 4];

/// A labelling of the ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// The cluster of each rank, `0..clusters`, numbered by first appearance in rank order.
    pub labels: Vec<u32>,
    /// Number of clusters.
    pub clusters: usize,
    /// What made it, e.g. `k=2` or `linkage=ward, metric=euclidean`.
    pub parameters: String,
    /// Its scores; `None` before tuning, or where they are undefined.
    pub scores: Option<Scores>,
}

impl Clustering {
    /// Takes any labels and numbers them by first appearance; unscored.
    pub fn new(labels: &[u32], parameters: String) -> Self {
        let mut new_name: Vec<u32> = Vec::new();
        let mut clusters = 0;
        let labels = labels
            .iter()
            .map(|&label| {
                let label = label as usize;
                if label >= new_name.len() {
                    new_name.resize(label + 1, u32::MAX);
                }
                if new_name[label] == u32::MAX {
                    new_name[label] = clusters;
                    clusters += 1;
                }
                new_name[label]
            })
            .collect();
        Self {
            labels,
            clusters: clusters as usize,
            parameters,
            scores: None,
        }
    }
}

/// A clustering method with the grid it is tuned over.
pub trait Algorithm: Sync + Send {
    /// The name used in settings, folders and reports.
    fn name(&self) -> &'static str;

    /// The labellings of the grid, in its order, unscored. A grid point that cannot be computed is left out.
    fn candidates(&self, space: &Space) -> Vec<Clustering>;
}

/// All algorithms, in the order of the reports.
pub fn registry() -> &'static [&'static dyn Algorithm] {
    &[
        &kmeans::KMeans,
        &dbscan::Dbscan,
        &gmm::Gmm,
        &hierarchical::Hierarchical,
        &mean_shift::MeanShift,
        &fuzzy::Fuzzy,
    ]
}

#[cfg(test)]
mod tests;

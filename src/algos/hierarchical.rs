//! Agglomerative clustering cut at two clusters, over seven pairs of linkage and metric.
//!
//! Source: scikit-learn `AgglomerativeClustering(2)`; the linkages themselves are in [`super::linkage`].
//!
//! Up to [`EXACT_LIMIT`] distinct rows: exact, `O(n^2)` time for each pair, one matrix at a time. Above: the same on the
//! weighted centres of at most [`super::cells::CELL_LIMIT`] cells, so that every merge height is off by at most two cell diameters.
//! Measured at n = 4,096 against the exact cut (`cells_come_near_the_exact_cuts` in `linkage`): ward 2 labels differ, average
//! 0 (Euclidean) and 9 (Manhattan), single 0 and 0, complete 6 (Euclidean). Complete linkage with Manhattan distances cut elsewhere: its
//! top merges lie close together, and a small error in a farthest pair changes their order.
//! n < 3 or a single distinct row: no candidates. Equal rows are one weighted point and never part. Ties: see `linkage`.

use super::linkage::{Method, Metric, Scratch, last_two};
use super::space::{EXACT_LIMIT, Space};
use super::{Algorithm, Clustering, Row};

/// The pairs tried, in this order.
pub const GRID: [(Method, Metric); 7] = [
    (Method::Ward, Metric::Euclidean),
    (Method::Complete, Metric::Euclidean),
    (Method::Complete, Metric::Manhattan),
    (Method::Average, Metric::Euclidean),
    (Method::Average, Metric::Manhattan),
    (Method::Single, Metric::Euclidean),
    (Method::Single, Metric::Manhattan),
];

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Hierarchical;

impl Algorithm for Hierarchical {
    fn name(&self) -> &'static str {
        "hierarchical"
    }

    fn candidates(&self, space: &Space) -> Vec<Clustering> {
        if space.len() < 3 || space.points().len() < 2 {
            return Vec::new();
        }
        let stand_ins = StandIns::of(space);
        let mut scratch = Scratch::default();
        GRID.iter()
            .map(|&(method, metric)| {
                let labels = stand_ins.last_two(space, method, metric, &mut scratch);
                space.clustering(&labels, format!("linkage={}, metric={}", method.name(), metric.name()))
            })
            .collect()
    }
}

/// The two clusters of one pair, by point.
pub fn point_labels(space: &Space, method: Method, metric: Metric) -> Vec<u32> {
    StandIns::of(space).last_two(space, method, metric, &mut Scratch::default())
}

/// The points themselves, or the cell centres above the exact limit.
enum StandIns {
    Points,
    Centres(Vec<Row>, Vec<f64>),
}

impl StandIns {
    fn of(space: &Space) -> Self {
        if space.points().len() <= EXACT_LIMIT {
            return Self::Points;
        }
        let cells = space.cells();
        let mut centres = vec![[0.0; 4]; cells.count];
        let mut weights = vec![0.0; cells.count];
        for ((point, &weight), &cell) in space.points().iter().zip(space.weights()).zip(&cells.of_point) {
            weights[cell as usize] += weight;
            for axis in 0..4 {
                centres[cell as usize][axis] += weight * point[axis];
            }
        }
        for (centre, weight) in centres.iter_mut().zip(&weights) {
            centre.iter_mut().for_each(|value| *value /= weight);
        }
        Self::Centres(centres, weights)
    }

    fn last_two(&self, space: &Space, method: Method, metric: Metric, scratch: &mut Scratch) -> Vec<u32> {
        match self {
            Self::Points => last_two(space.points(), space.weights(), method, metric, scratch),
            Self::Centres(centres, weights) => {
                let of_cell = last_two(centres, weights, method, metric, scratch);
                space
                    .cells()
                    .of_point
                    .iter()
                    .map(|&cell| of_cell[cell as usize])
                    .collect()
            }
        }
    }
}

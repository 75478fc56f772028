//! Rank coordinates from a parallelism order string.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Megatron-LM's own rank order.
pub const DEFAULT_ORDER: &str = "tp-cp-ep-dp-pp";

/// What an order string may be, in words.
pub const ORDERS: &str = "tp, cp, ep, dp, pp joined by `-`, fastest first, each at most once, \
                          every axis larger than 1 among them";

/// The parallelism axes in the order in which [`Sizes`] holds them.
const AXES: [&str; 5] = ["tp", "cp", "ep", "dp", "pp"];

/// An axis that newer Megatron-LM versions name in their orders; its size is 1, so that it moves no rank.
const IDLE_AXIS: &str = "gtp_remat";

/// Why an order string fits no rank grid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OrderError {
    /// A word that is no axis.
    #[error("unknown axis `{axis}` in `{order}`")]
    Unknown {
        /// The word.
        axis: String,
        /// The order.
        order: String,
    },
    /// An axis that is named again.
    #[error("axis `{axis}` twice in `{order}`")]
    Twice {
        /// The axis.
        axis: String,
        /// The order.
        order: String,
    },
    /// An axis larger than 1 that is not named.
    #[error("axis `{axis}` missing in `{order}`")]
    Missing {
        /// The axis.
        axis: String,
        /// The order.
        order: String,
    },
}

/// Degree of each parallelism axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Tensor parallel.
    pub tp: usize,
    /// Context parallel.
    pub cp: usize,
    /// Expert parallel (1 in the dense grid).
    pub ep: usize,
    /// Data parallel.
    pub dp: usize,
    /// Pipeline parallel.
    pub pp: usize,
}

impl Sizes {
    fn as_array(self) -> [usize; 5] {
        [self.tp, self.cp, self.ep, self.dp, self.pp]
    }
}

/// Position of a rank on each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coordinates {
    /// Tensor-parallel position.
    pub tp: usize,
    /// Context-parallel position.
    pub cp: usize,
    /// Expert-parallel position.
    pub ep: usize,
    /// Data-parallel position.
    pub dp: usize,
    /// Pipeline stage.
    pub pp: usize,
}

/// The mapping between ranks and coordinates: the leftmost axis of the order has stride 1.
#[derive(Debug, Clone)]
pub struct Layout {
    sizes: Sizes,
    strides: [usize; 5],
}

impl Layout {
    /// Builds the mapping.
    ///
    /// # Errors
    /// An unknown or repeated axis in `order`, or an axis larger than 1 that it does not name.
    pub fn new(order: &str, sizes: Sizes) -> Result<Self, OrderError> {
        let words = |axis: &str| (axis.to_owned(), order.to_owned());
        let degrees = sizes.as_array();
        let mut strides = [0; 5];
        let mut stride = 1;
        for name in order.split('-').filter(|name| *name != IDLE_AXIS) {
            let Some(axis) = AXES.iter().position(|axis| *axis == name) else {
                let (axis, order) = words(name);
                return Err(OrderError::Unknown { axis, order });
            };
            if strides[axis] != 0 {
                let (axis, order) = words(name);
                return Err(OrderError::Twice { axis, order });
            }
            strides[axis] = stride;
            stride *= degrees[axis];
        }
        for axis in 0..AXES.len() {
            if strides[axis] == 0 {
                if degrees[axis] > 1 {
                    let (axis, order) = words(AXES[axis]);
                    return Err(OrderError::Missing { axis, order });
                }
                // An axis of size 1 never moves the rank.
                strides[axis] = stride;
            }
        }
        Ok(Self { sizes, strides })
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.sizes.as_array().iter().product()
    }

    /// Coordinates of a rank below [`Layout::ranks`].
    #[must_use]
    pub fn coordinates(&self, rank: usize) -> Coordinates {
        let degrees = self.sizes.as_array();
        let at = |axis: usize| (rank / self.strides[axis]) % degrees[axis];
        Coordinates {
            tp: at(0),
            cp: at(1),
            ep: at(2),
            dp: at(3),
            pp: at(4),
        }
    }

    /// Rank at the coordinates.
    #[must_use]
    pub fn rank(&self, at: Coordinates) -> usize {
        [at.tp, at.cp, at.ep, at.dp, at.pp]
            .iter()
            .zip(self.strides)
            .map(|(position, stride)| position * stride)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(tp: usize, cp: usize, dp: usize, pp: usize) -> Sizes {
        Sizes { tp, cp, ep: 1, dp, pp }
    }

    #[test]
    fn default_order_makes_stages_contiguous() {
        let layout = Layout::new("tp-cp-ep-dp-pp", sizes(2, 1, 3, 4)).unwrap();
        let dp0: Vec<usize> = (0..24)
            .filter(|&r| {
                let at = layout.coordinates(r);
                at.tp == 0 && at.pp == 0
            })
            .collect();
        assert_eq!(dp0, [0, 2, 4]);
        let pp0: Vec<usize> = (0..24)
            .filter(|&r| {
                let at = layout.coordinates(r);
                at.tp == 0 && at.dp == 0
            })
            .collect();
        assert_eq!(pp0, [0, 6, 12, 18]);
    }

    #[test]
    fn any_order_round_trips() {
        for order in [
            "tp-pp-dp",
            "tp-cp-ep-pp-dp",
            "tp-cp-pp-dp",
            "tp-gtp_remat-cp-ep-dp-pp",
            "dp-tp-pp",
            "pp-dp-tp-cp",
        ] {
            let layout = Layout::new(order, sizes(2, 1, 4, 3)).unwrap();
            for rank in 0..24 {
                assert_eq!(layout.rank(layout.coordinates(rank)), rank, "{order}");
            }
        }
        let layout = Layout::new("tp-pp-dp", sizes(2, 1, 4, 3)).unwrap();
        assert_eq!(layout.coordinates(2).pp, 1);
        assert_eq!(layout.coordinates(6).dp, 1);
    }

    #[test]
    fn bad_orders_are_refused() {
        for order in ["tp-xx-dp", "tp-tp-dp-pp", "tp-dp", ""] {
            assert!(Layout::new(order, sizes(2, 1, 4, 3)).is_err(), "{order}");
        }
        assert!(Layout::new("tp-pp-dp", sizes(2, 2, 4, 3)).is_err(), "cp is missing");
    }
}

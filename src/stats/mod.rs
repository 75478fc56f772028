//! Statistics that every rule shares, each once: order statistics that pass over missing values, quantiles of the normal and
//! of Student's distribution, seeded random numbers.
//!
//! In: numbers. Out: numbers. May use: nothing of this crate.

mod normal;
mod order;
pub mod random;

pub use normal::{exceeded_with, student};
pub use order::{
    IQR_TO_SD, MAD_TO_SD, kept, low_median, mad, mean, mean_in_any_order, median, quantile, sorted, trimmed, width,
};

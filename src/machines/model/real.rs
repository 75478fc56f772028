//! Single and double precision: the network computes in the one, the gradient check in the other.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A floating-point number.
pub trait Real:
    Copy
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Send
    + Sync
{
    /// From a constant.
    fn of(value: f64) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Exponential.
    fn exp(self) -> Self;

    /// Logistic function.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        let half = Self::of(0.5);
        half + half * (half * self).tanh()
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }

    fn tanh(self) -> Self {
        f64::tanh(self)
    }

    fn exp(self) -> Self {
        f64::exp(self)
    }
}

impl Real for f32 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as Self
    }

    /// A rational approximation (that of Eigen) without branches, so that a row of lanes is one vector; within 3e-7.
    #[inline(always)]
    fn tanh(self) -> Self {
        let x = self.clamp(-7.905, 7.905);
        let square = x * x;
        let above = [
            -2.760_768_4e-16,
            2.000_188e-13,
            -8.604_672e-11,
            5.122_297e-8,
            1.485_722_3e-5,
            6.372_619e-4,
            4.893_524_6e-3,
        ];
        let below = [1.198_258_4e-6, 1.185_347e-4, 2.268_434_6e-3, 4.893_525e-3];
        let mut p = above[0];
        for coefficient in &above[1..] {
            p = p * square + coefficient;
        }
        let mut q = below[0];
        for coefficient in &below[1..] {
            q = q * square + coefficient;
        }
        x * p / q
    }

    fn exp(self) -> Self {
        f32::exp(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_tangent_is_near_the_exact_one() {
        for step in -2000..2000 {
            let x = step as f32 * 0.01;
            assert!((Real::tanh(x) - x.tanh()).abs() < 4e-7, "{x}");
        }
    }
}

//! Tails of Student's t and the normal distribution.

use statrs::function::gamma::ln_gamma;

use crate::stats::exceeded_with;

/// Probability that a Student variable with `freedom` degrees exceeds `t` >= 0.
///
/// Half the regularised incomplete beta function I(freedom / (freedom + t^2); freedom / 2, 1 / 2), by Lentz's continued
/// fraction (Numerical Recipes, section 6.4). Good to 1e-12 relative down to 1e-300.
#[must_use]
pub fn student_tail(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || t <= 0.0 {
        return 0.5;
    }
    let x = freedom / (freedom + t * t);
    0.5 * incomplete_beta(0.5 * freedom, 0.5, x)
}

fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    h
}

/// The value that a standard normal variable exceeds with probability `tail`; at most 37.
#[must_use]
pub fn normal_score(tail: f64) -> f64 {
    exceeded_with(tail.clamp(1e-300, 1.0 - 1e-16))
}

/// The probability that a standard normal variable exceeds `score`: the false-alarm rate of a threshold.
#[must_use]
pub fn normal_tail(score: f64) -> f64 {
    // Student's tail with very many degrees is the normal one; 1e7 degrees are good to 1e-6 relative at 5.
    if score < 0.0 {
        1.0 - normal_tail(-score)
    } else {
        student_tail(score, 1e7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From scipy.stats: t.sf and norm.isf.
    #[test]
    fn tails_are_those_of_scipy() {
        for (t, freedom, expected) in [
            (1.0, 3.0, 0.195_501_109_477_885_3),
            (5.0, 4.0, 0.003_745_216_94),
            (45.0, 3.0, 1.207_901_9e-5),
            (12.0, 15.0, 2.161_367e-9),
        ] {
            let got = student_tail(t, freedom);
            assert!((got / expected - 1.0).abs() < 1e-6, "{t} {freedom} {got} {expected}");
        }
        for (tail, expected) in [
            (0.025, 1.959_963_984_540_054),
            (1e-10, 6.361_340_902_404_056),
            (0.4, 0.253_347_103_135_799_7),
            (1e-200, 30.205_593_8),
        ] {
            assert!(
                (normal_score(tail) - expected).abs() < 1e-6,
                "{tail} {}",
                normal_score(tail)
            );
        }
        assert!((normal_tail(3.0) - 1.349_898e-3).abs() < 1e-8);
        assert!((normal_score(normal_tail(3.4)) - 3.4).abs() < 1e-4);
    }

    #[test]
    fn a_longer_way_is_never_more_likely() {
        for freedom in [1.0, 3.0, 9.5, 200.0] {
            let mut last = 1.0;
            for step in 0..400 {
                let tail = student_tail(f64::from(step) * 0.5, freedom);
                assert!(tail <= last && tail >= 0.0, "{freedom} {step}");
                last = tail;
            }
        }
    }
}

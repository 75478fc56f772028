//! Tails of Student's t and the normal distribution.

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

/// Lanczos' approximation (g = 7, n = 9).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = (1..9).fold(COEFFICIENTS[0], |sum, i| sum + COEFFICIENTS[i] / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The value that a standard normal variable exceeds with probability `tail`; at most 37.
///
/// Wichura's algorithm AS 241 (PPND16).
#[must_use]
pub fn normal_score(tail: f64) -> f64 {
    let tail = tail.clamp(1e-300, 1.0 - 1e-16);
    let q = 0.5 - tail;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let r = (-tail.min(1.0 - tail).ln()).sqrt();
    let size = if r <= 5.0 {
        ratio(r - 1.6, &SHOULDER)
    } else {
        ratio(r - 5.0, &TAIL)
    };
    if q < 0.0 { -size } else { size }
}

type Ratio = ([f64; 8], [f64; 8]);

fn ratio(r: f64, (above, below): &Ratio) -> f64 {
    let polynomial = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, &c| sum * r + c);
    polynomial(above) / polynomial(below)
}

const CENTRE: Ratio = (
    [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946_1e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_66e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_854e3,
    ],
);
const SHOULDER: Ratio = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);
const TAIL: Ratio = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

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

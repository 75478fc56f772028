//! Covariance types of the mixture and the log-densities they give.

use crate::algos::Row;

const REGULARISATION: f64 = 1e-6;
const LOG_TWO_PI: f64 = 1.837_877_066_409_345_3;

type Matrix = [[f64; 4]; 4];

/// The shape of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covariance {
    /// A matrix for each component.
    Full,
    /// One matrix for both.
    Tied,
    /// A variance for each column and component.
    Diagonal,
    /// One variance for each component.
    Spherical,
}

impl Covariance {
    /// The order of the grid.
    pub const ALL: [Self; 4] = [Self::Full, Self::Tied, Self::Diagonal, Self::Spherical];

    /// scikit-learn's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Tied => "tied",
            Self::Diagonal => "diag",
            Self::Spherical => "spherical",
        }
    }

    /// The weighted densities of both components from the responsibilities (`share` = that of component 1);
    /// `None` when a covariance is not positive definite.
    pub(super) fn densities(
        self,
        points: &[Row],
        weights: &[f64],
        share: &[f64],
        mass: [f64; 2],
        means: [Row; 2],
    ) -> Option<[Density; 2]> {
        let total = mass[0] + mass[1];
        let scatter = match self {
            Self::Full | Self::Tied => scatter_matrices(points, weights, share, &means),
            Self::Diagonal | Self::Spherical => scatter_diagonals(points, weights, share, &means),
        };
        let shapes: [Matrix; 2] = match self {
            Self::Full | Self::Diagonal => [0, 1].map(|c| regularised(&scatter[c], mass[c])),
            Self::Tied => {
                let mut sum = scatter[0];
                for (row, other) in sum.iter_mut().zip(&scatter[1]) {
                    for (value, more) in row.iter_mut().zip(other) {
                        *value += more;
                    }
                }
                [regularised(&sum, total); 2]
            }
            Self::Spherical => [0, 1].map(|c| {
                let shape = regularised(&scatter[c], mass[c]);
                let variance = (shape[0][0] + shape[1][1] + shape[2][2] + shape[3][3]) / 4.0;
                let mut even = [[0.0; 4]; 4];
                for (axis, row) in even.iter_mut().enumerate() {
                    row[axis] = variance;
                }
                even
            }),
        };
        let component = |c: usize| Density::new(means[c], &shapes[c], mass[c] / total);
        Some([component(0)?, component(1)?])
    }
}

/// `sum of w r (x - m)(x - m)'` of each component, lower triangle.
fn scatter_matrices(points: &[Row], weights: &[f64], share: &[f64], means: &[Row; 2]) -> [Matrix; 2] {
    let mut scatter = [[[0.0; 4]; 4]; 2];
    for ((point, &weight), &share) in points.iter().zip(weights).zip(share) {
        let parts = [weight * (1.0 - share), weight * share];
        for c in 0..2 {
            for i in 0..4 {
                let scaled = parts[c] * (point[i] - means[c][i]);
                for j in 0..=i {
                    scatter[c][i][j] += scaled * (point[j] - means[c][j]);
                }
            }
        }
    }
    scatter
}

fn scatter_diagonals(points: &[Row], weights: &[f64], share: &[f64], means: &[Row; 2]) -> [Matrix; 2] {
    let mut squares = [[0.0; 4]; 2];
    for ((point, &weight), &share) in points.iter().zip(weights).zip(share) {
        let parts = [weight * (1.0 - share), weight * share];
        for c in 0..2 {
            for i in 0..4 {
                let apart = point[i] - means[c][i];
                squares[c][i] += parts[c] * apart * apart;
            }
        }
    }
    squares.map(|variances| {
        let mut matrix = [[0.0; 4]; 4];
        for (axis, row) in matrix.iter_mut().enumerate() {
            row[axis] = variances[axis];
        }
        matrix
    })
}

fn regularised(scatter: &Matrix, mass: f64) -> Matrix {
    let mut shape = scatter.map(|row| row.map(|value| value / mass));
    for (axis, row) in shape.iter_mut().enumerate() {
        row[axis] += REGULARISATION;
    }
    shape
}

/// `ln(weight) + ln N(x | mean, covariance)`.
#[derive(Debug, Clone)]
pub(super) struct Density {
    mean: Row,
    /// Inverse of the lower Cholesky factor (lower triangle).
    whitening: Matrix,
    constant: f64,
}

impl Density {
    fn new(mean: Row, covariance: &Matrix, weight: f64) -> Option<Self> {
        let factor = cholesky(covariance)?;
        let mut whitening = [[0.0; 4]; 4];
        let mut log_determinant = 0.0;
        for i in 0..4 {
            log_determinant += factor[i][i].ln();
            whitening[i][i] = 1.0 / factor[i][i];
            for j in 0..i {
                let inner: f64 = (j..i).map(|k| factor[i][k] * whitening[k][j]).sum();
                whitening[i][j] = -inner / factor[i][i];
            }
        }
        let constant = weight.ln() - 2.0 * LOG_TWO_PI - log_determinant;
        constant.is_finite().then_some(Self {
            mean,
            whitening,
            constant,
        })
    }

    #[inline]
    pub(super) fn log(&self, point: &Row) -> f64 {
        let d = [
            point[0] - self.mean[0],
            point[1] - self.mean[1],
            point[2] - self.mean[2],
            point[3] - self.mean[3],
        ];
        let w = &self.whitening;
        let z0 = w[0][0] * d[0];
        let z1 = w[1][0] * d[0] + w[1][1] * d[1];
        let z2 = w[2][0] * d[0] + w[2][1] * d[1] + w[2][2] * d[2];
        let z3 = w[3][0] * d[0] + w[3][1] * d[1] + w[3][2] * d[2] + w[3][3] * d[3];
        self.constant - 0.5 * (z0 * z0 + z1 * z1 + z2 * z2 + z3 * z3)
    }
}

/// The lower Cholesky factor; `None` unless positive definite and finite.
fn cholesky(matrix: &Matrix) -> Option<Matrix> {
    let mut factor = [[0.0; 4]; 4];
    for i in 0..4 {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            let left = matrix[i][j] - inner;
            if i == j {
                if !(left > 0.0 && left.is_finite()) {
                    return None;
                }
                factor[i][i] = left.sqrt();
            } else {
                factor[i][j] = left / factor[j][j];
            }
        }
    }
    Some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_of_a_correlated_normal() {
        let mut covariance = [[0.0; 4]; 4];
        for (i, row) in covariance.iter_mut().enumerate() {
            row[i] = 2.0;
        }
        covariance[1][0] = 1.0;
        let density = Density::new([1.0, 0.0, 0.0, 0.0], &covariance, 0.5).expect("positive definite");
        // Determinant (2*2 - 1) * 4 = 12; quadratic form of (1, 1, 0, 0) under the inverse: (2 + 2 - 2) / 3.
        let expected = 0.5f64.ln() - 2.0 * LOG_TWO_PI - 0.5 * 12f64.ln() - 0.5 * 2.0 / 3.0;
        assert!((density.log(&[2.0, 1.0, 0.0, 0.0]) - expected).abs() < 1e-12);
    }

    #[test]
    fn a_singular_matrix_is_refused() {
        assert!(cholesky(&[[0.0; 4]; 4]).is_none());
        assert!(cholesky(&[[f64::NAN; 4]; 4]).is_none());
    }
}

//! The computation: products of dense matrices that stay in the first cache of a core.

/// Rows and columns of the matrices. Three of them take 24 KiB, less than a first cache.
const SIZE: usize = 32;

/// Products of a round. They are an even number: two reflections are none.
const PRODUCTS: usize = 4;

/// Largest difference of an element from what it must be. Rounding alone, at most one unit in the
/// last place for each product, needs 10^9 products for it.
const ERROR_MAX: f64 = 1e-6;

type Matrix = Box<[[f64; SIZE]; SIZE]>;

/// Matrices of one thread.
pub(super) struct Kernel {
    matrix: Matrix,
    reflection: Matrix,
    product: Matrix,
}

impl Kernel {
    /// Makes a matrix of numbers, and the reflection by which it is multiplied (Householder's:
    /// `I - 2 v v' / v'v`).
    pub(super) fn new() -> Self {
        let number = |row: usize, column: usize| (row * SIZE + column) as f64 / SIZE as f64;
        let square: f64 = (1..=SIZE).map(|element| (element * element) as f64).sum();
        let reflected = |row: usize, column: usize| {
            let diagonal = if row == column { 1.0 } else { 0.0 };
            diagonal - 2.0 * ((row + 1) * (column + 1)) as f64 / square
        };
        Self { matrix: made(number), reflection: made(reflected), product: made(|_, _| 0.0) }
    }

    /// Computes one round: some microseconds of floating-point work.
    pub(super) fn round(&mut self) {
        for _ in 0..PRODUCTS {
            multiply(&self.matrix, &self.reflection, &mut self.product);
            std::mem::swap(&mut self.matrix, &mut self.product);
        }
    }

    /// True if the result of all rounds is right: the matrix of the beginning.
    pub(super) fn is_right(&self) -> bool {
        let first = Self::new();
        let elements = self.matrix.iter().flatten().zip(first.matrix.iter().flatten());
        elements.into_iter().all(|(found, first)| (found - first).abs() <= ERROR_MAX)
    }
}

fn made(element: impl Fn(usize, usize) -> f64) -> Matrix {
    let mut matrix = Box::new([[0.0; SIZE]; SIZE]);
    for (row, elements) in matrix.iter_mut().enumerate() {
        for (column, made) in elements.iter_mut().enumerate() {
            *made = element(row, column);
        }
    }
    matrix
}

/// Computes a dense product.
fn multiply(left: &Matrix, right: &Matrix, product: &mut Matrix) {
    for (row, sums) in left.iter().zip(product.iter_mut()) {
        *sums = [0.0; SIZE];
        for (factor, elements) in row.iter().zip(right.iter()) {
            for (sum, element) in sums.iter_mut().zip(elements) {
                *sum += factor * element;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: rounds compute, lead back to where they began, and a wrong result is noticed.
    use super::*;

    #[test]
    fn rounds_lead_back() {
        let mut kernel = Kernel::new();
        multiply(&kernel.matrix, &kernel.reflection, &mut kernel.product);
        let moved = kernel.product.iter().flatten().zip(kernel.matrix.iter().flatten());
        assert!(moved.into_iter().all(|(one, other)| (one - other).abs() > 1e-3));
        for _ in 0..100 {
            kernel.round();
        }
        assert!(kernel.is_right());
        kernel.matrix[3][4] += 1e-3;
        assert!(!kernel.is_right());
    }
}

//! A column of numbers: a plain slice where no cell is missing, which is nearly always.

/// Numbers of a column, of which some may be missing.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Numbers<T> {
    /// The default number where the cell is missing.
    cells: Vec<T>,
    /// Which cells are missing; empty where none is.
    missing: Vec<bool>,
}

impl<T: Copy + Default> Numbers<T> {
    /// Appends one cell.
    pub fn push(&mut self, cell: Option<T>) {
        if cell.is_none() && self.missing.is_empty() {
            self.missing.resize(self.cells.len(), false);
            self.missing.push(true);
        } else if !self.missing.is_empty() {
            self.missing.push(cell.is_none());
        }
        self.cells.push(cell.unwrap_or_default());
    }

    /// Takes the cells from a row on away.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.cells.truncate(rows);
        self.missing.truncate(rows);
    }

    /// The cell of a row, `None` where it is missing and beyond the end.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<T> {
        if !self.missing.is_empty() && self.missing.get(row).copied().unwrap_or(true) {
            return None;
        }
        self.cells.get(row).copied()
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// All cells, where none is missing.
    #[must_use]
    pub fn whole(&self) -> Option<&[T]> {
        self.missing.is_empty().then_some(self.cells.as_slice())
    }

    /// The cells from the first to the last.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }
}

impl<T> From<Vec<T>> for Numbers<T> {
    /// A column in which no cell is missing.
    fn from(cells: Vec<T>) -> Self {
        let missing = Vec::new();
        Self { cells, missing }
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Numbers<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(cells: I) -> Self {
        let mut numbers = Self::default();
        let cells = cells.into_iter();
        numbers.cells.reserve(cells.size_hint().0);
        cells.for_each(|cell| numbers.push(cell));
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_shows_and_the_cells_around_it_stay() {
        let mut numbers = Numbers::default();
        numbers.push(Some(4));
        numbers.push(Some(5));
        assert_eq!(numbers.whole(), Some(&[4, 5][..]));
        numbers.push(None);
        numbers.push(Some(6));
        assert_eq!(numbers.whole(), None);
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [Some(4), Some(5), None, Some(6)]);
        assert_eq!((numbers.get(2), numbers.get(3), numbers.get(9)), (None, Some(6), None));
        assert_eq!(numbers, [Some(4), Some(5), None, Some(6)].into_iter().collect());
    }

    #[test]
    fn plain_cells_are_taken_over() {
        let numbers = Numbers::from(vec![1.5, f64::NAN]);
        assert!(numbers.get(1).is_some_and(f64::is_nan) && numbers.get(2).is_none());
        assert_eq!((numbers.len(), numbers.is_empty()), (2, false));
    }
}

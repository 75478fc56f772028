//! Where ranks and iterations stand in a table.

/// Positions of ascending distinct values; a plain offset when they have no gap.
pub(super) struct Positions {
    first: i64,
    sorted: Option<Vec<i64>>,
}

impl Positions {
    /// `values` ascend.
    pub fn new(values: impl ExactSizeIterator<Item = i64> + Clone) -> Self {
        let first = values.clone().next().unwrap_or_default();
        let dense = values
            .clone()
            .enumerate()
            .all(|(place, value)| value.checked_sub(first) == Some(place as i64));
        Self {
            first,
            sorted: (!dense).then(|| values.collect()),
        }
    }

    /// The position of one of the values; of another that of the next greater one, or one beyond the end.
    pub fn at(&self, value: i64) -> usize {
        match &self.sorted {
            None => (value - self.first) as usize,
            Some(sorted) => sorted.partition_point(|&known| known < value),
        }
    }
}

//! Where ranks and iterations stand in a table.

/// Entries that a lookup table may have for each value in it.
const SPARSE: i64 = 64;

/// Positions of ascending distinct values: a plain offset where they have no gap, a lookup where they have some.
pub(super) struct Positions {
    first: i64,
    kind: Kind,
}

enum Kind {
    Offset,
    /// For each number from the first on the position of the next value that is not below it.
    Lookup(Vec<u32>),
    Sorted(Vec<i64>),
}

impl Positions {
    /// `values` ascend.
    pub fn new(values: impl ExactSizeIterator<Item = i64> + Clone) -> Self {
        let first = values.clone().next().unwrap_or_default();
        let is_dense = |(place, value): (usize, i64)| value.checked_sub(first) == Some(place as i64);
        if values.clone().enumerate().all(is_dense) {
            return Self {
                first,
                kind: Kind::Offset,
            };
        }
        let span = values.clone().last().and_then(|last| last.checked_sub(first));
        let small = SPARSE.saturating_mul(values.len() as i64);
        let kind = if span.is_some_and(|span| span < small) && u32::try_from(values.len()).is_ok() {
            let mut lookup = Vec::new();
            for (place, value) in values.enumerate() {
                lookup.resize((value - first) as usize + 1, place as u32);
            }
            Kind::Lookup(lookup)
        } else {
            Kind::Sorted(values.collect())
        };
        Self { first, kind }
    }

    /// The position of one of the values; of another that of the next greater one, or one beyond the end.
    pub fn at(&self, value: i64) -> usize {
        match &self.kind {
            Kind::Offset => value.wrapping_sub(self.first) as usize,
            Kind::Lookup(lookup) => {
                let place = value.saturating_sub(self.first).max(0) as usize;
                lookup.get(place).map_or(usize::MAX, |&position| position as usize)
            }
            Kind::Sorted(sorted) => sorted.partition_point(|&known| known < value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_finds_its_values() {
        for values in [vec![3, 4, 5], vec![0, 8, 16, 17], vec![-5, i64::MAX], vec![]] {
            let positions = Positions::new(values.iter().copied());
            for (place, &value) in values.iter().enumerate() {
                assert_eq!(positions.at(value), place, "{value} of {values:?}");
            }
            assert!(positions.at(6) != positions.at(8) || values.get(positions.at(6)) != Some(&6));
        }
        assert_eq!(Positions::new([0, 8].into_iter()).at(5), 1);
        assert!(Positions::new([0, 8].into_iter()).at(9) > 1);
    }
}

//! Cells that can't be read as what their column holds: how many, and the first of them, for people to see what is wrong.

use std::path::Path;

/// The columns whose cells may be such.
const COLUMNS: [(&str, &str); 3] = [
    ("timestamp", "a time"),
    ("rank", "a whole number"),
    ("iteration", "a whole number"),
];
/// Letters of a cell that are shown.
const SHOWN: usize = 40;

/// Cells that can't be read, of a batch or a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct UnreadCells {
    columns: [(u64, String); COLUMNS.len()],
}

impl UnreadCells {
    /// Counts a cell that is there and can't be read; one without a letter counts as missing.
    pub(super) fn note(&mut self, column: &str, cell: &str) {
        let cell = cell.trim();
        let place = COLUMNS.iter().position(|(known, _)| *known == column);
        let Some((count, example)) = place.map(|place| &mut self.columns[place]).filter(|_| !cell.is_empty()) else {
            return;
        };
        *count += 1;
        if *count == 1 {
            *example = cell.chars().take(SHOWN).collect();
            if example.len() < cell.len() {
                example.push_str("...");
            }
        }
    }

    /// Adds those of a later batch.
    pub(super) fn merge(&mut self, later: Self) {
        for ((count, example), (more, first)) in self.columns.iter_mut().zip(later.columns) {
            if *count == 0 {
                *example = first;
            }
            *count += more;
        }
    }

    /// A sentence for each column with such cells.
    pub(super) fn notes(&self, path: &Path) -> Vec<String> {
        let columns = COLUMNS.iter().zip(&self.columns);
        let noted = columns.filter(|(_, (count, _))| *count > 0);
        let note = |((column, what), (count, example)): (&(&str, &str), &(u64, String))| {
            let (cells, are) = if *count == 1 { ("cell", "is") } else { ("cells", "are") };
            format!(
                "{}: {count} {cells} of column `{column}` {are} not {what}, such as `{example}`",
                path.display()
            )
        };
        noted.map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cell_is_the_example() {
        let (mut first, mut second) = (UnreadCells::default(), UnreadCells::default());
        first.note("timestamp", " yesterday ");
        first.note("timestamp", "tomorrow");
        first.note("rank", " ");
        second.note("timestamp", "never");
        second.note("rank", &"x".repeat(50));
        first.merge(second);
        assert_eq!(
            first.notes(Path::new("a.csv")),
            [
                "a.csv: 3 cells of column `timestamp` are not a time, such as `yesterday`".to_owned(),
                format!(
                    "a.csv: 1 cell of column `rank` is not a whole number, such as `{}...`",
                    "x".repeat(40)
                ),
            ]
        );
    }
}

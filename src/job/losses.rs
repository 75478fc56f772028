//! What the recorder says that it lost: totals of a rank's process, which grow.

use std::collections::BTreeMap;

use super::quality::DataQuality;

/// Names of the totals, as the recorder writes them.
const NAMES: [&str; 3] = ["lost_iterations", "lost_rows", "lost_calls"];

/// A total of a run's rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    pub run: u32,
    pub rank: i64,
    /// Place in [`NAMES`].
    pub name: usize,
    pub total: u64,
}

impl Loss {
    /// The total that a row tells; `None` of a name that is not known.
    pub fn of(run: u32, rank: i64, name: &str, total: f64) -> Option<Self> {
        let is_count = (0.0..1e15).contains(&total);
        let name = NAMES.iter().position(|known| *known == name).filter(|_| is_count)?;
        Some(Self {
            run,
            rank,
            name,
            total: total as u64,
        })
    }
}

/// The greatest totals so far.
#[derive(Debug, Default)]
pub(super) struct Losses(BTreeMap<(u32, i64, usize), u64>);

impl Losses {
    /// Takes a total, and counts by how much it is above the one before, in whatever order they come.
    pub fn take(&mut self, loss: Loss, quality: &mut DataQuality) {
        let known = self.0.entry((loss.run, loss.rank, loss.name)).or_default();
        let more = loss.total.saturating_sub(*known);
        *known += more;
        let count = match loss.name {
            0 => &mut quality.recorder_lost_iterations,
            1 => &mut quality.recorder_lost_rows,
            _ => &mut quality.recorder_lost_calls,
        };
        *count += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_count_once_in_whatever_order_they_come() {
        let rows = [
            (0, 3, "lost_rows", 5.0),
            (0, 3, "lost_rows", 9.0),
            (0, 4, "lost_rows", 1.0),
            (1, 3, "lost_rows", 2.0),
        ];
        for order in [[0, 1, 2, 3], [3, 1, 0, 2]] {
            let (mut losses, mut quality) = (Losses::default(), DataQuality::default());
            for place in order {
                let (run, rank, name, total) = rows[place];
                losses.take(Loss::of(run, rank, name, total).expect("a loss"), &mut quality);
            }
            assert_eq!(quality.recorder_lost_rows, 12);
        }
        assert_eq!(Loss::of(0, 0, "lost_hope", 1.0), None);
        assert_eq!(Loss::of(0, 0, "lost_rows", f64::NAN), None);
    }
}

//! Single calls of the timers around transfers, from `megatron_timers_trace` rows.
//!
//! Only durations are kept: clocks of different nodes need not agree, and what pairs two calls is their place in the
//! order of their timer. A bad call keeps that place, as NaN.

use super::quality::DataQuality;

/// Durations of every call of one timer, seconds; NaN for a call whose times can't be right.
#[derive(Debug, Clone, PartialEq)]
pub struct CallTable {
    /// Name of the timer.
    pub name: String,
    iterations: usize,
    /// Where the calls of (rank, iteration) begin, rank after rank; one more at the end.
    begins: Vec<usize>,
    seconds: Vec<f64>,
}

impl CallTable {
    /// A table of ranks x iterations from the calls of each cell, rank after rank.
    #[must_use]
    pub fn new<'a>(name: &str, iterations: usize, cells: impl IntoIterator<Item = &'a [f64]>) -> Self {
        let mut begins = vec![0];
        let mut seconds = Vec::new();
        for cell in cells {
            seconds.extend_from_slice(cell);
            begins.push(seconds.len());
        }
        Self {
            name: name.to_owned(),
            iterations,
            begins,
            seconds,
        }
    }

    /// The calls of the rank at a position in the iteration at a position, in order; none beyond the table.
    #[must_use]
    pub fn of(&self, rank: usize, iteration: usize) -> &[f64] {
        let cell = rank * self.iterations + iteration;
        match (self.begins.get(cell), self.begins.get(cell + 1)) {
            (Some(&begin), Some(&end)) if iteration < self.iterations => &self.seconds[begin..end],
            _ => &[],
        }
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        (self.begins.len() - 1) / self.iterations.max(1)
    }

    /// Cells with a call, calls that can be used and calls that can't.
    pub(super) fn count(&self) -> (u64, u64, u64) {
        let cells = self.begins.windows(2).filter(|ends| ends[0] < ends[1]).count();
        let bad = self.seconds.iter().filter(|seconds| seconds.is_nan()).count();
        (cells as u64, (self.seconds.len() - bad) as u64, bad as u64)
    }

    /// The part of some iterations (positions).
    pub(super) fn select(&self, iterations: &[usize]) -> Self {
        let ranks = 0..self.ranks();
        let cells = ranks.flat_map(|rank| iterations.iter().map(move |&iteration| self.of(rank, iteration)));
        Self::new(&self.name, iterations.len(), cells)
    }
}

/// Appends the duration of every call in a list of start, end, start, end, ...: NaN for a pair with an odd or infinite
/// number, an end before its start or a start before the end above, and for a start without an end.
pub(super) fn push_durations(times: &[f64], seconds: &mut Vec<f64>) {
    let mut over = f64::NEG_INFINITY;
    let (pairs, rest) = times.as_chunks::<2>();
    for &[start, end] in pairs {
        let good = start.is_finite() && end.is_finite() && start <= end && over <= start && (end - start).is_finite();
        if good {
            over = end;
        }
        seconds.push(if good { end - start } else { f64::NAN });
    }
    seconds.extend(rest.iter().map(|_| f64::NAN));
}

/// Kept trace rows, in columns, their calls one after the other.
#[derive(Debug, Default)]
pub(super) struct CallRows {
    pub timer: Vec<u32>,
    pub run: Vec<u32>,
    pub rank: Vec<u32>,
    pub iteration: Vec<i64>,
    pub timestamp: Vec<i64>,
    pub ends: Vec<usize>,
    pub seconds: Vec<f64>,
}

impl CallRows {
    pub fn len(&self) -> usize {
        self.timer.len()
    }

    /// The calls of a row.
    pub fn calls(&self, row: usize) -> &[f64] {
        let begin = row.checked_sub(1).map_or(0, |above| self.ends[above]);
        &self.seconds[begin..self.ends[row]]
    }
}

/// Where a row's cell is: its chunk and place in it.
#[derive(Clone, Copy)]
struct Found {
    chunk: u32,
    row: u32,
}

/// Fills one table a timer; of rows with the same key the later wins, at the same moment the one with more or longer
/// calls.
///
/// `cell` gives the position of (rank, iteration) for a row that counts. Rows that do not, and those that a later one
/// repeats, are counted as left out.
pub(super) fn tabulate(
    chunks: &[CallRows],
    names: &[String],
    shape: (usize, usize),
    cell: impl Fn(&CallRows, usize) -> Option<(usize, usize)>,
    quality: &mut DataQuality,
) -> Vec<CallTable> {
    let (ranks, iterations) = shape;
    let mut found: Vec<Vec<Option<Found>>> = vec![Vec::new(); names.len()];
    for (chunk, rows) in chunks.iter().enumerate() {
        for row in 0..rows.len() {
            let Some((rank, iteration)) = cell(rows, row) else {
                quality.trace_rows_left_out += 1;
                continue;
            };
            let table = &mut found[rows.timer[row] as usize];
            if table.is_empty() {
                table.resize(ranks * iterations, None);
            }
            let place = &mut table[rank * iterations + iteration];
            let new = Found {
                chunk: chunk as u32,
                row: row as u32,
            };
            match place {
                None => *place = Some(new),
                Some(known) => {
                    quality.trace_rows_left_out += 1;
                    if is_later(chunks, new, *known) {
                        *known = new;
                    }
                }
            }
        }
    }
    let calls_of =
        |found: &Option<Found>| found.map_or(&[][..], |found| chunks[found.chunk as usize].calls(found.row as usize));
    let mut tables: Vec<CallTable> = names
        .iter()
        .zip(&found)
        .filter(|(_, table)| !table.is_empty())
        .map(|(name, table)| CallTable::new(name, iterations, table.iter().map(calls_of)))
        .collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    count(&tables, quality);
    tables
}

fn is_later(chunks: &[CallRows], new: Found, known: Found) -> bool {
    let of = |found: Found| {
        let rows = &chunks[found.chunk as usize];
        (rows.timestamp[found.row as usize], rows.calls(found.row as usize))
    };
    let ((new_time, new), (known_time, known)) = (of(new), of(known));
    let by_calls = || {
        let pairs = new.iter().zip(known);
        let first = pairs.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
        new.len()
            .cmp(&known.len())
            .then(first.unwrap_or(std::cmp::Ordering::Equal))
    };
    new_time.cmp(&known_time).then_with(by_calls).is_gt()
}

/// Counts what the tables hold anew.
pub(super) fn count(tables: &[CallTable], quality: &mut DataQuality) {
    (quality.trace_rows_used, quality.calls_used, quality.bad_calls) = (0, 0, 0);
    for table in tables {
        let (cells, calls, bad) = table.count();
        quality.trace_rows_used += cells;
        quality.calls_used += calls;
        quality.bad_calls += bad;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(times: &[f64]) -> Vec<f64> {
        let mut seconds = Vec::new();
        push_durations(times, &mut seconds);
        seconds
    }

    #[test]
    fn bad_calls_keep_their_place() {
        assert_eq!(durations(&[1.0, 1.5, 2.0, 4.0]), [0.5, 2.0]);
        let nan_at = |times: &[f64]| -> Vec<bool> { durations(times).iter().map(|seconds| seconds.is_nan()).collect() };
        assert_eq!(nan_at(&[1.0, 1.5, 2.0]), [false, true], "no end");
        assert_eq!(nan_at(&[2.0, 1.0, 3.0, 4.0]), [true, false], "the end before the start");
        assert_eq!(nan_at(&[1.0, 3.0, 2.0, 4.0, 3.0, 5.0]), [false, true, false], "overlap");
        assert_eq!(nan_at(&[f64::NAN, 1.0, 0.0, f64::INFINITY]), [true, true]);
        assert_eq!(nan_at(&[-f64::MAX, f64::MAX]), [true], "longer than a number holds");
        assert!(durations(&[]).is_empty());
    }

    #[test]
    fn tables_give_the_calls_of_a_cell() {
        let table = CallTable::new("t", 2, [&[1.0][..], &[], &[2.0, 3.0], &[4.0]]);
        assert_eq!(
            (table.ranks(), table.of(0, 0), table.of(1, 0)),
            (2, &[1.0][..], &[2.0, 3.0][..])
        );
        assert!(table.of(0, 1).is_empty() && table.of(0, 2).is_empty() && table.of(5, 0).is_empty());
        let last = table.select(&[1]);
        assert_eq!((last.ranks(), last.of(1, 0)), (2, &[4.0][..]));
    }

    #[test]
    fn of_repeated_rows_the_later_wins_and_the_rest_is_counted() {
        let rows = |timestamp: Vec<i64>, calls: &[f64]| CallRows {
            timer: vec![0; timestamp.len()],
            run: vec![0; timestamp.len()],
            rank: vec![0; timestamp.len()],
            iteration: vec![0; timestamp.len()],
            ends: (1..=timestamp.len()).collect(),
            timestamp,
            seconds: calls.to_vec(),
        };
        let names = ["forward-send".to_owned()];
        for chunks in [
            [rows(vec![5, 9], &[0.1, 0.2]), rows(vec![9, 7], &[0.3, f64::NAN])],
            [rows(vec![9, 7], &[0.3, f64::NAN]), rows(vec![9, 5], &[0.2, 0.1])],
        ] {
            let mut quality = DataQuality::default();
            let tables = tabulate(&chunks, &names, (1, 1), |_, _| Some((0, 0)), &mut quality);
            assert_eq!(tables[0].of(0, 0), [0.3]);
            assert_eq!((quality.trace_rows_used, quality.trace_rows_left_out), (1, 3));
            assert_eq!((quality.calls_used, quality.bad_calls), (1, 0));
        }
        let mut quality = DataQuality::default();
        let chunks = [rows(vec![5], &[0.1])];
        assert!(tabulate(&chunks, &names, (1, 1), |_, _| None, &mut quality).is_empty());
        assert_eq!(quality.trace_rows_left_out, 1);
    }
}

//! Rows of one job's window from the server, as batches that a scan digests.

use std::cell::Cell;
use std::sync::mpsc::{SyncSender, sync_channel};

use clickhouse::Row;
use serde::Deserialize;

use super::counts::{self, CountedRows};
use super::error::{Failure, ServerError};
use super::layout::{Layout, NULL};
use super::session::{Attempt, Session};
use super::tally::{self, From};
use crate::source::fate::WantedMetric;
use crate::source::{Micros, Rows, Scan, SourceError, TextColumn};

/// Rows a batch holds: about 6 MB, of which four are under way for each metric.
const BATCH_ROWS: usize = 1 << 16;

/// Which rows are wanted.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Job id.
    pub job: &'a str,
    /// Metrics by name; rows of others are counted.
    pub metrics: &'a [WantedMetric],
    /// First moment.
    pub start: Option<Micros>,
    /// Last moment.
    pub end: Option<Micros>,
    /// First and last iteration.
    pub iterations: (Option<i64>, Option<i64>),
    /// The iterations of which lists are wanted, where not all are.
    pub sampled: Option<&'a [i64]>,
}

#[derive(Row, Deserialize)]
struct Line<'a> {
    name: &'a str,
    rank_number: i64,
    iteration_number: i64,
    micros: i64,
    node_name: &'a str,
    run: &'a str,
    value: Option<f64>,
}

/// The same with all values: apart, because an empty list in each of millions of rows is not free.
#[derive(Row, Deserialize)]
struct ListLine<'a> {
    name: &'a str,
    rank_number: i64,
    iteration_number: i64,
    micros: i64,
    node_name: &'a str,
    run: &'a str,
    value: Option<f64>,
    elements: Vec<f64>,
}

impl<'a> ListLine<'a> {
    fn plain(&self) -> Line<'a> {
        Line {
            name: self.name,
            rank_number: self.rank_number,
            iteration_number: self.iteration_number,
            micros: self.micros,
            node_name: self.node_name,
            run: self.run,
            value: self.value,
        }
    }
}

/// Passes rows of the window through a scan, the metrics side by side.
///
/// A broken answer is thrown away and asked for again; what the scan absorbs comes from whole answers only. An answer
/// counts as whole when it has as many rows as the server counted just before.
pub(super) fn pull<S: Scan>(
    (session, layout): (&Session, &Layout),
    wanted: &Wanted<'_>,
    metrics: &[usize],
    counted: &[CountedRows],
    scan: &mut S,
    progress: &dyn Fn(u64),
) -> Result<(), SourceError> {
    let digests = std::thread::scope(|scope| {
        let (passed, arrivals) = sync_channel::<usize>(16);
        let (here, wanted_here, counted_here) = (&*scan, wanted, counted);
        let mut workers = Vec::new();
        for &place in metrics {
            if counts::sent(counted, place) > 0 {
                let passed = passed.clone();
                workers.push(scope.spawn(move || {
                    let expected = counts::sent(counted_here, place);
                    pull_metric(session, layout, wanted_here, place, expected, here, &passed)
                }));
            }
        }
        drop(passed);
        let mut total = 0;
        for rows in arrivals {
            total += rows as u64;
            progress(total);
        }
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<_>, Box<ServerError>>>()
    })?;
    for digest in digests.into_iter().flatten() {
        scan.absorb(digest)?;
    }
    Ok(())
}

/// What a pull tells the thread that digests.
enum Step {
    Batch(Box<Rows>),
    /// What came so far belongs to a broken answer.
    StartAgain,
}

fn pull_metric<S: Scan>(
    session: &Session,
    layout: &Layout,
    wanted: &Wanted<'_>,
    place: usize,
    expected: u64,
    scan: &S,
    passed: &SyncSender<usize>,
) -> Result<Vec<S::Digest>, Box<ServerError>> {
    std::thread::scope(|scope| {
        let (sender, steps) = sync_channel::<Step>(2);
        let digester = scope.spawn(move || {
            let mut digests = Vec::new();
            for step in steps {
                match step {
                    Step::Batch(rows) => digests.push(scan.digest(*rows)),
                    Step::StartAgain => digests.clear(),
                }
            }
            digests
        });
        let first_time = Cell::new(true);
        let outcome = session.run("read the job's rows", async |attempt| {
            let expected = if first_time.replace(false) {
                expected
            } else {
                // Nothing came of the rows before: the digester is there until the sender goes.
                let _ = sender.send(Step::StartAgain);
                counts::sent(&counts::count(attempt, layout, wanted, None).await?, place)
            };
            let got = send_rows(attempt, layout, wanted, place, &sender, passed).await?;
            // More than were counted may come while the job still writes.
            if got < expected {
                return Err(Failure::Cut { got, counted: expected });
            }
            Ok(())
        });
        drop(sender);
        let digests = digester.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.map(|()| digests)
    })
}

/// Sends one metric's rows on in batches and returns how many they were.
async fn send_rows(
    attempt: &Attempt<'_>,
    layout: &Layout,
    wanted: &Wanted<'_>,
    place: usize,
    sender: &SyncSender<Step>,
    passed: &SyncSender<usize>,
) -> Result<u64, Failure> {
    let metric = &wanted.metrics[place];
    let sql = statement(layout, wanted, place);
    let query = tally::bound(attempt, &sql, wanted, place)
        .param("lists", metric.lists.unwrap_or_default())
        .param("sampled", wanted.sampled.unwrap_or_default());
    let failure = |error| attempt.failure(&error);
    let mut rows = empty(layout);
    let mut got = 0;
    let mut add = |line: &Line<'_>, elements: &[f64]| {
        push(&mut rows, wanted.job, metric.name, line, elements);
        got += 1;
        if rows.len() == BATCH_ROWS {
            // Both receivers are there as long as this runs.
            let _ = passed.send(rows.len());
            let _ = sender.send(Step::Batch(Box::new(std::mem::replace(&mut rows, empty(layout)))));
        }
    };
    if metric.lists.is_some() {
        let mut lines = query.fetch::<ListLine<'_>>().map_err(failure)?;
        while let Some(line) = lines.next().await.map_err(failure)? {
            add(&line.plain(), &line.elements);
        }
    } else {
        let mut lines = query.fetch::<Line<'_>>().map_err(failure)?;
        while let Some(line) = lines.next().await.map_err(failure)? {
            add(&line, &[]);
        }
    }
    let _ = passed.send(rows.len());
    let _ = sender.send(Step::Batch(Box::new(rows)));
    Ok(got)
}

fn statement(layout: &Layout, wanted: &Wanted<'_>, place: usize) -> String {
    let elements = match wanted.metrics[place].lists {
        Some(_) => ", arrayMap(element -> ifNull(toFloat64(element), nan), metric_values) AS elements",
        None => "",
    };
    let From { with, from } = tally::rows(layout, wanted, place, "");
    format!(
        "{with} SELECT row_subname AS name, row_rank AS rank_number, row_iteration AS iteration_number, \
         row_micros AS micros, row_node AS node_name, row_run AS run, row_value AS value{elements} {from}"
    )
}

fn empty(layout: &Layout) -> Rows {
    Rows {
        node: layout.has_node.then(TextColumn::default),
        rerun_uuid: layout.has_run.then(TextColumn::default),
        ..Rows::default()
    }
}

fn push(rows: &mut Rows, job: &str, metric: &str, line: &Line<'_>, elements: &[f64]) {
    let number = |number: i64| Some(number).filter(|&number| number != NULL);
    rows.timestamp.push(Some(line.micros));
    rows.job.push(Some(job));
    rows.metric_name.push(Some(metric));
    rows.subname.push(Some(line.name));
    rows.rank.push(Some(line.rank_number));
    rows.iteration.push(number(line.iteration_number));
    rows.value.push(line.value);
    rows.calls.push(elements.iter().copied());
    if let Some(nodes) = &mut rows.node {
        nodes.push(Some(line.node_name));
    }
    if let Some(runs) = &mut rows.rerun_uuid {
        runs.push(Some(line.run));
    }
}

//! The heat map: how much slower than its peers each rank was in each iteration.

use std::collections::BTreeMap;

use serde::Serialize;

use super::named_ranks;
use crate::report::report::Report;
use crate::verdict::comparison::{Comparison, RankComparison};

/// Ranks up to which each has a row of its own from the start.
const RANKS_ONE_BY_ONE: usize = 256;
/// Rows of a heat map.
const ROWS: usize = 256;
/// Columns of a heat map of many rows.
const COLUMNS_OF_MANY: usize = 100;

/// Rows x iterations: thousandths beyond the peers' time.
#[derive(Debug, Serialize)]
pub(in crate::report::page) struct Heat {
    pub title: String,
    pub rows: Vec<String>,
    pub marked: Vec<bool>,
    pub columns: Vec<i64>,
    pub cells: Vec<Vec<Option<i64>>>,
    #[serde(skip)]
    pub left_out: usize,
}

pub(super) fn heats(report: &Report, comparison: &Comparison) -> Vec<Heat> {
    if comparison
        .ranks
        .iter()
        .all(|rank| rank.factors.iter().all(Option::is_none))
    {
        return Vec::new();
    }
    let named = named_ranks(report);
    let rows = |rank: &RankComparison| Row {
        name: format!("rank {}", rank.rank),
        marked: named.contains(&rank.rank),
        factors: rank.factors.clone(),
    };
    let by_rank: Vec<Row> = comparison.ranks.iter().map(rows).collect();
    if by_rank.len() <= RANKS_ONE_BY_ONE {
        return vec![heat("all ranks".to_owned(), by_rank, comparison, false)];
    }
    let mut by_node = BTreeMap::<&str, Row>::new();
    for (rank, row) in comparison.ranks.iter().zip(&by_rank) {
        let node = by_node.entry(&rank.node).or_insert_with(|| Row {
            name: rank.node.clone(),
            marked: false,
            factors: vec![None; row.factors.len()],
        });
        node.marked |= row.marked;
        for (worst, &factor) in node.factors.iter_mut().zip(&row.factors) {
            *worst = (*worst).max(factor);
        }
    }
    let mut heats = Vec::new();
    if by_node.len() > 1 {
        heats.push(heat(
            "nodes: their slowest rank in each step".to_owned(),
            by_node.into_values().collect(),
            comparison,
            true,
        ));
    }
    heats.push(heat("the worst ranks".to_owned(), by_rank, comparison, true));
    heats
}

struct Row {
    name: String,
    marked: bool,
    factors: Vec<Option<u32>>,
}

impl Row {
    /// Mean factor: what rows are ordered by.
    fn mean(&self) -> f64 {
        let known = || self.factors.iter().flatten();
        known().map(|&factor| f64::from(factor)).sum::<f64>() / known().count().max(1) as f64
    }
}

fn heat(title: String, mut rows: Vec<Row>, comparison: &Comparison, worst_first: bool) -> Heat {
    let mut left_out = 0;
    if worst_first {
        rows.sort_by(|a, b| b.marked.cmp(&a.marked).then(b.mean().total_cmp(&a.mean())));
        left_out = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
    }
    let columns = comparison.iterations.len();
    let most = if rows.len() > RANKS_ONE_BY_ONE / 2 {
        COLUMNS_OF_MANY
    } else {
        columns
    };
    let together = columns.div_ceil(most.max(1)).max(1);
    // Of columns that are put together the worst shows: a short spell must not fade.
    let cells = |row: &Row| {
        let worst = |factors: &[Option<u32>]| factors.iter().flatten().max().map(|&factor| i64::from(factor) - 1000);
        row.factors.chunks(together).map(worst).collect()
    };
    Heat {
        title,
        marked: rows.iter().map(|row| row.marked).collect(),
        cells: rows.iter().map(cells).collect(),
        rows: rows.into_iter().map(|row| row.name).collect(),
        columns: comparison.iterations.iter().step_by(together).copied().collect(),
        left_out,
    }
}

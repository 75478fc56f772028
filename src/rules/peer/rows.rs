//! Where the rows of a table stand: who are peers, who are in one pipeline, who share a node.

/// The place of each row, by row.
#[derive(Debug, Clone)]
pub(super) struct RowPlaces {
    /// Node, as a code.
    pub nodes: Vec<u32>,
    /// Rows of each stage, by stage: they do the same work and are peers.
    pub stages: Vec<Vec<usize>>,
    /// Rows of each pipeline, by pipeline, inside by stage.
    pub pipelines: Vec<Vec<usize>>,
    /// Stage of each row, as a place in `stages`.
    pub stage_of: Vec<usize>,
}

impl RowPlaces {
    /// Groups rows by their stage and pipeline.
    pub fn new(stages: &[u32], pipelines: &[u32], nodes: Vec<u32>) -> Self {
        let by_stage = grouped(stages.iter().map(|&stage| (stage, 0)));
        let mut stage_of = vec![0; stages.len()];
        for (place, rows) in by_stage.iter().enumerate() {
            for &row in rows {
                stage_of[row] = place;
            }
        }
        Self {
            nodes,
            stages: by_stage,
            pipelines: grouped(pipelines.iter().copied().zip(stages.iter().copied())),
            stage_of,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.stage_of.len()
    }
}

/// Rows of equal first key, groups in its order, rows inside by the second key and then by number.
pub(super) fn grouped(keys: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<usize>> {
    let mut order: Vec<((u32, u32), usize)> = keys.enumerate().map(|(row, key)| (key, row)).collect();
    order.sort_unstable();
    order
        .chunk_by(|a, b| a.0.0 == b.0.0)
        .map(|group| group.iter().map(|&(_, row)| row).collect())
        .collect()
}

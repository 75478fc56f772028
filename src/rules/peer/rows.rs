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
    /// Pipeline of each row, as a place in `pipelines`.
    pub pipeline_of: Vec<usize>,
}

impl RowPlaces {
    /// Groups rows by their stage and pipeline.
    pub fn new(stages: &[u32], pipelines: &[u32], nodes: Vec<u32>) -> Self {
        let by_stage = grouped(stages.iter().map(|&stage| (stage, 0)));
        let by_pipeline = grouped(pipelines.iter().copied().zip(stages.iter().copied()));
        Self {
            nodes,
            stage_of: group_of(&by_stage, stages.len()),
            pipeline_of: group_of(&by_pipeline, stages.len()),
            stages: by_stage,
            pipelines: by_pipeline,
        }
    }

    /// Where some of the rows stand among themselves.
    pub fn select(&self, rows: &[usize]) -> Self {
        let of = |groups: &[usize]| -> Vec<u32> { rows.iter().map(|&row| groups[row] as u32).collect() };
        let nodes = rows.iter().map(|&row| self.nodes[row]).collect();
        Self::new(&of(&self.stage_of), &of(&self.pipeline_of), nodes)
    }
}

/// The group of each row, as a place in `groups`.
fn group_of(groups: &[Vec<usize>], rows: usize) -> Vec<usize> {
    let mut of_row = vec![0; rows];
    for (group, members) in groups.iter().enumerate() {
        members.iter().for_each(|&row| of_row[row] = group);
    }
    of_row
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

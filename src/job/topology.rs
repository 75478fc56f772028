//! Where each rank stands in the job's parallel groups.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Sizes of the parallel groups and each rank's stage, as the `megatron_parallel_group_rank` rows give them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Topology {
    /// Group name (`pp`, `dp`, `tp`, ...) -> ranks in such a group: the largest position seen, plus 1.
    pub sizes: BTreeMap<String, u32>,
    /// Whether the job's rows gave the topology; without any it counts as one pipeline stage.
    pub from_rows: bool,
    /// Pipeline stage of each rank, parallel to the job's ranks; `None` where no row tells it.
    #[serde(skip)]
    pub stages: Vec<Option<u32>>,
    /// Group name -> position of each rank, parallel to the job's ranks; `None` where no row tells it.
    #[serde(skip)]
    pub positions: BTreeMap<String, Vec<Option<u32>>>,
}

impl Topology {
    /// Builds the topology of `ranks` from (group, rank) -> position.
    #[must_use]
    pub fn from_positions(ranks: &[u32], positions: impl Iterator<Item = (String, u32, u32)>) -> Self {
        let mut sizes = BTreeMap::new();
        let mut stages = vec![None; ranks.len()];
        let mut from_rows = false;
        let mut by_group = BTreeMap::new();
        for (group, rank, position) in positions {
            from_rows = true;
            let known = by_group.entry(group.clone()).or_insert_with(|| vec![None; ranks.len()]);
            if let Ok(place) = ranks.binary_search(&rank) {
                known[place] = Some(position);
            }
            if group == "pp"
                && let Ok(place) = ranks.binary_search(&rank)
            {
                stages[place] = Some(position);
            }
            let size = sizes.entry(group).or_insert(0);
            *size = (*size).max(position.saturating_add(1));
        }
        Self {
            sizes,
            from_rows,
            stages,
            positions: by_group,
        }
    }

    /// Number of pipeline stages.
    #[must_use]
    pub fn pipeline_stages(&self) -> u32 {
        self.sizes.get("pp").copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_largest_positions_plus_one() {
        let rows = [("pp", 4, 0), ("pp", 9, 1), ("dp", 4, 3), ("pp", 99, 1)];
        let rows = rows
            .into_iter()
            .map(|(group, rank, position)| (group.to_owned(), rank, position));
        let topology = Topology::from_positions(&[4, 5, 9], rows);
        assert_eq!(topology.stages, [Some(0), None, Some(1)]);
        assert_eq!(topology.pipeline_stages(), 2);
        assert_eq!(topology.sizes["dp"], 4);
    }

    #[test]
    fn without_rows_there_is_one_stage() {
        let topology = Topology::from_positions(&[0, 1], std::iter::empty());
        assert_eq!((topology.pipeline_stages(), topology.from_rows), (1, false));
    }
}

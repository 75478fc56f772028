//! Which ranks were seen, and on which node last.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::collected_rows::Names;
use super::positions::Positions;
use crate::source::Micros;

/// Ranks that share a block: rows mostly come in the order of ranks, so that most find their block at hand.
const BLOCK: usize = 16;
/// The node of a rank that was not seen.
const UNSEEN: u32 = u32::MAX;
/// The node of a rank whose rows name none.
const UNNAMED: u32 = u32::MAX - 1;

/// The latest node of each run's ranks; of two at the same moment the greater name, so that the order of rows does not
/// matter.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    lookup: FxHashMap<(u32, u32), usize>,
    blocks: Vec<Block>,
    at_hand: usize,
    /// The ranks of a run whose rows name more than one node.
    moving: BTreeSet<(u32, u32)>,
}

#[derive(Debug)]
struct Block {
    run: u32,
    /// The first rank over [`BLOCK`].
    number: u32,
    latest: [(Micros, u32); BLOCK],
}

impl Sightings {
    /// Notes a rank of a run; `node` is the code of its name in `names`, if the row gives one.
    pub fn note(&mut self, run: u32, rank: u32, time: Micros, node: Option<u32>, names: &[String]) {
        let (number, place) = (rank / BLOCK as u32, rank as usize % BLOCK);
        let known = &mut self.block(run, number).latest[place];
        let Some(node) = node else {
            if known.1 == UNSEEN {
                *known = (Micros::MIN, UNNAMED);
            }
            return;
        };
        let named = |code: u32| names.get(code as usize);
        let is_another = known.1 < UNNAMED && known.1 != node && named(known.1) != named(node);
        if known.1 >= UNNAMED || time > known.0 || (time == known.0 && named(node) > named(known.1)) {
            *known = (time, node);
        }
        if is_another {
            self.moving.insert((run, rank));
        }
    }

    /// Adds those of a batch; `runs` and `nodes` turn its codes into those of `names`.
    pub fn absorb(&mut self, batch: &Self, runs: &[u32], nodes: &[u32], names: &[String]) {
        for block in &batch.blocks {
            let run = runs[block.run as usize];
            for (rank, &(time, node)) in block.ranks() {
                let node = (node < UNNAMED).then(|| nodes[node as usize]);
                self.note(run, rank, time, node, names);
            }
        }
        let moving = batch.moving.iter().map(|&(run, rank)| (runs[run as usize], rank));
        self.moving.extend(moving);
    }

    /// The ranks that were seen, ascending.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self
            .blocks
            .iter()
            .flat_map(Block::ranks)
            .map(|(rank, _)| rank)
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Ranks of which one of these runs has rows of more than one node: a machine that was exchanged without a new run's name, or
    /// a damaged name.
    pub fn on_several_nodes(&self, ranks: &[u32], runs: &BTreeSet<u32>) -> u64 {
        let moving = self.moving.iter().filter(|(run, _)| runs.contains(run));
        let moving: BTreeSet<u32> = moving.map(|&(_, rank)| rank).collect();
        ranks.iter().filter(|rank| moving.contains(rank)).count() as u64
    }

    /// The latest node of each rank in some runs, as a code; `None` where they name none.
    pub fn nodes(&self, ranks: &[u32], runs: &BTreeSet<u32>, names: &Names) -> Vec<Option<u32>> {
        let row_of = Positions::new(ranks.iter().map(|&rank| i64::from(rank)));
        let mut latest: Vec<Option<(Micros, &str, u32)>> = vec![None; ranks.len()];
        for block in self.blocks.iter().filter(|block| runs.contains(&block.run)) {
            for (rank, &(time, node)) in block.ranks() {
                let (row, name) = (row_of.at(rank.into()), names.names.get(node as usize));
                if let (Some(name), true) = (name, ranks.get(row) == Some(&rank)) {
                    let candidate = Some((time, name.as_str(), node));
                    latest[row] = latest[row].max(candidate);
                }
            }
        }
        latest.into_iter().map(|known| known.map(|(.., node)| node)).collect()
    }

    fn block(&mut self, run: u32, number: u32) -> &mut Block {
        let is_at_hand = |block: &Block| block.run == run && block.number == number;
        if !self.blocks.get(self.at_hand).is_some_and(is_at_hand) {
            self.at_hand = *self.lookup.entry((run, number)).or_insert(self.blocks.len());
            if self.at_hand == self.blocks.len() {
                self.blocks.push(Block {
                    run,
                    number,
                    latest: [(Micros::MIN, UNSEEN); BLOCK],
                });
            }
        }
        &mut self.blocks[self.at_hand]
    }
}

impl Block {
    /// The ranks that were seen.
    fn ranks(&self) -> impl Iterator<Item = (u32, &(Micros, u32))> {
        let first = self.number * BLOCK as u32;
        let seen = self.latest.iter().enumerate().filter(|(_, known)| known.1 != UNSEEN);
        seen.map(move |(place, known)| (first + place as u32, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        names.codes(&["b".to_owned(), "a".to_owned(), "c".to_owned()]);
        names
    }

    #[test]
    fn the_latest_node_of_a_rank_counts() {
        let names = names();
        let mut seen = Sightings::default();
        for (run, rank, time, node) in [
            (0, 5, 1, Some(0)),
            (0, 5, 9, Some(1)),
            (0, u32::MAX, 3, None),
            (1, 5, 7, Some(2)),
            (0, 40, 2, Some(1)),
            (0, 40, 2, Some(0)),
            (0, 40, 2, Some(1)),
            (0, 5, 8, Some(2)),
        ] {
            seen.note(run, rank, time, node, &names.names);
        }
        assert_eq!(seen.ranks(), [5, 40, u32::MAX]);
        let of = |runs: &[u32]| seen.nodes(&[5, 40, u32::MAX], &runs.iter().copied().collect(), &names);
        assert_eq!(of(&[0]), [Some(1), Some(0), None], "of two at once the greater name");
        assert_eq!(of(&[1]), [Some(2), None, None]);
        assert_eq!(of(&[0, 1]), [Some(1), Some(0), None]);
        let several = |ranks: &[u32], runs: &[u32]| seen.on_several_nodes(ranks, &runs.iter().copied().collect());
        assert_eq!(
            (
                several(&[5, 40, 41], &[0, 1]),
                several(&[5, 40], &[1]),
                several(&[40], &[0])
            ),
            (2, 0, 1)
        );
    }

    #[test]
    fn batches_have_codes_of_their_own() {
        let mut batch = Sightings::default();
        let words = ["c".to_owned(), "b".to_owned()];
        batch.note(0, 3, 4, Some(0), &words);
        batch.note(0, 4, 4, Some(1), &words);
        let (names, mut all) = (names(), Sightings::default());
        all.absorb(&batch, &[6], &[2, 0], &names.names);
        all.absorb(&Sightings::default(), &[], &[], &names.names);
        assert_eq!(all.nodes(&[3, 4], &[6].into(), &names), [Some(2), Some(0)]);
        assert_eq!(all.on_several_nodes(&[3, 4], &[6].into()), 0);
        let mut later = Sightings::default();
        later.note(0, 3, 5, Some(1), &words);
        later.note(0, 4, 1, Some(0), &words);
        later.note(0, 4, 2, Some(1), &words);
        all.absorb(&later, &[6], &[2, 0], &names.names);
        assert_eq!(all.on_several_nodes(&[3, 4], &[6].into()), 2);
    }
}

//! Places from what is stated: the job's `megatron_parallel_group_rank` rows, flags, or both.

use std::collections::{BTreeMap, BTreeSet};

use super::inferred::stride;
use super::{Place, Resolved, Topology, TopologyError, TopologyFlags, TopologyOrigin};
use crate::contract::rank_order::{DEFAULT_ORDER, Layout, Sizes};

/// The axes of the dense grid, in the order of every array here.
const AXES: [&str; 4] = ["tp", "cp", "dp", "pp"];
const TP: usize = 0;
const CP: usize = 1;
const DP: usize = 2;
const PP: usize = 3;

/// Positions of the dense grid that the rows give one rank.
type Known = [Option<u32>; 4];

/// What the rows say.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// Group name -> largest position, plus 1.
    pub sizes: BTreeMap<String, u32>,
    of_rank: BTreeMap<u32, Known>,
}

impl Positions {
    /// Gathers (group, rank, position).
    pub fn new(rows: impl Iterator<Item = (String, u32, u32)>) -> Self {
        let mut all = Self::default();
        for (group, rank, position) in rows {
            if let Some(axis) = AXES.iter().position(|axis| *axis == group) {
                all.of_rank.entry(rank).or_default()[axis] = Some(position);
            }
            let size = all.sizes.entry(group).or_insert(0);
            *size = (*size).max(position.saturating_add(1));
        }
        all
    }

    /// Whether no row tells a position in the dense grid.
    pub fn is_empty(&self) -> bool {
        self.of_rank.is_empty()
    }

    fn known(&self, rank: u32) -> Known {
        self.of_rank.get(&rank).copied().unwrap_or_default()
    }

    fn dense_sizes(&self) -> Known {
        AXES.map(|axis| self.sizes.get(axis).copied())
    }
}

/// Places `ranks` by rows, flags, or both.
///
/// Flags fill in what rows lack. Rows alone rule where no order is stated: a flag of a size says nothing of places.
pub(super) fn resolve(ranks: &[u32], rows: Positions, flags: &TopologyFlags) -> Result<Resolved, TopologyError> {
    for (group, flag) in flags.sizes() {
        match (flag, rows.sizes.get(group)) {
            (Some(flag), Some(&rows)) if flag != rows => return Err(TopologyError::Size { group, flag, rows }),
            _ => {}
        }
    }
    let last = ranks.last().max(rows.of_rank.keys().next_back());
    // Where only one rank of each tensor-parallel group wrote rows, the last group counts whole.
    let world = last.map_or(0, |&last| u64::from(last) + u64::from(stride(ranks)));
    let stated = [flags.tp, flags.cp, flags.dp, flags.pp];
    let by_rows = rows.dense_sizes();
    let fills_in = (0..AXES.len()).any(|axis| by_rows[axis].is_none() && stated[axis].is_some_and(|size| size > 1));
    if rows.is_empty() && stated.iter().all(Option::is_none) {
        return Err(TopologyError::NoSizes);
    }
    if !rows.is_empty() && flags.order.is_none() && !fills_in {
        return Ok(by_rows_alone(ranks, &rows, world));
    }

    let merged = std::array::from_fn(|axis| by_rows[axis].or(stated[axis]));
    let sizes = complete(merged, world, rows.is_empty())?;
    check_experts(flags.ep, &sizes, world)?;
    let explaining = || explaining_order(&rows, sizes, world).map(|(order, _)| order);
    let order = match &flags.order {
        Some(order) => order.clone(),
        None if rows.is_empty() => DEFAULT_ORDER.to_owned(),
        None => explaining().unwrap_or_else(|| DEFAULT_ORDER.to_owned()),
    };
    let layout = Layout::new(&order, sizes)?;
    for (&rank, known) in &rows.of_rank {
        let at = coordinates(&layout, rank);
        if let Some((axis, position)) = differing(known, at) {
            return Err(TopologyError::Position {
                order,
                rank,
                group: AXES[axis],
                flags: at[axis],
                rows: position,
            });
        }
    }
    let origin = if rows.is_empty() {
        TopologyOrigin::Flags
    } else {
        TopologyOrigin::Rows
    };
    let mut named = rows.sizes;
    for (axis, size) in AXES.iter().zip(as_array(sizes)) {
        if *axis != "cp" || size > 1 {
            named.insert((*axis).to_owned(), size as u32);
        }
    }
    if let Some(ep) = flags.ep {
        named.insert("ep".to_owned(), ep);
    }
    Ok(Resolved {
        topology: Topology {
            sizes: named,
            origin,
            places: ranks.iter().map(|&rank| place(&layout, sizes, rank)).collect(),
        },
        not_placed: 0,
    })
}

fn by_rows_alone(ranks: &[u32], rows: &Positions, world: u64) -> Resolved {
    let sizes = rows.dense_sizes();
    let whole = |known: &Known| (0..AXES.len()).all(|axis| sizes[axis].is_none() || known[axis].is_some());
    let all_whole = ranks.iter().all(|&rank| whole(&rows.known(rank)));
    // Where rows are wanting, an order that explains those that are there tells the rest.
    let order = if all_whole && sizes[DP].is_some() {
        None
    } else {
        let counted = complete(sizes, world, false).ok();
        counted.and_then(|sizes| explaining_order(rows, sizes, world).map(|(_, layout)| (layout, sizes)))
    };
    let mut not_placed = 0;
    let places = if let Some((layout, sizes)) = order {
        ranks.iter().map(|&rank| place(&layout, sizes, rank)).collect()
    } else {
        let mut places = Vec::with_capacity(ranks.len());
        let mut counters = BTreeMap::<(u32, u32, u32), u32>::new();
        let mut lost = Vec::new();
        for (at, &rank) in ranks.iter().enumerate() {
            let known = rows.known(rank);
            let [tp, cp, dp, pp] = known.map(Option::unwrap_or_default);
            let mut pipeline = dp;
            if !whole(&known) {
                lost.push(at);
            } else if sizes[DP].is_none() {
                let next = counters.entry((pp, tp, cp)).or_default();
                pipeline = *next;
                *next += 1;
            }
            let lane = u64::from(tp) + u64::from(sizes[TP].unwrap_or(1)) * u64::from(cp);
            places.push(Place {
                stage: pp,
                pipeline,
                member: u32::try_from(lane).unwrap_or(u32::MAX),
            });
        }
        not_placed = lost.len() as u64;
        // Nobody may pass for the peer of a rank of which nothing is known: each is a pipeline of its own.
        let mut lost_here = lost.iter().peekable();
        let first_free = places
            .iter()
            .enumerate()
            .filter(|(at, _)| lost_here.next_if_eq(&at).is_none())
            .map(|(_, place)| place.pipeline.saturating_add(1))
            .max()
            .unwrap_or(0);
        for (pipeline, at) in (first_free..=u32::MAX).zip(lost) {
            places[at].pipeline = pipeline;
        }
        number_members(&mut places);
        places
    };
    Resolved {
        topology: Topology {
            sizes: rows.sizes.clone(),
            origin: TopologyOrigin::Rows,
            places,
        },
        not_placed,
    }
}

/// Numbers the members of each (stage, pipeline) in rank order where their lanes do not tell them apart.
fn number_members(places: &mut [Place]) {
    let distinct: BTreeSet<Place> = places.iter().copied().collect();
    if distinct.len() == places.len() {
        return;
    }
    let mut counters = BTreeMap::<(u32, u32), u32>::new();
    for place in places {
        let next = counters.entry((place.stage, place.pipeline)).or_default();
        place.member = *next;
        *next += 1;
    }
}

/// Fills in the sizes that are not stated, so that they make up the world.
///
/// `exact`: the product must be the number of ranks; else there may be fewer, of which the last wrote no row.
fn complete(stated: Known, world: u64, exact: bool) -> Result<Sizes, TopologyError> {
    let cp = stated[CP].unwrap_or(1);
    let mut sizes = [stated[TP], Some(cp), stated[DP], stated[PP]];
    let open = match (sizes[TP], sizes[DP], sizes[PP]) {
        (_, None, _) => Some(DP),
        (None, Some(_), Some(_)) => Some(TP),
        (Some(_), Some(_), None) => Some(PP),
        (None, Some(dp), None) => {
            let rest = world / (u64::from(cp) * u64::from(dp)).max(1);
            if rest > 1 {
                return Err(TopologyError::Open { dp, rest, world });
            }
            None
        }
        (Some(_), Some(_), Some(_)) => None,
    };
    for (axis, size) in sizes.iter_mut().enumerate() {
        if Some(axis) != open {
            size.get_or_insert(1);
        }
    }
    let product: u128 = sizes.iter().flatten().map(|&size| u128::from(size)).product();
    let words = || {
        let known: Vec<String> = AXES
            .iter()
            .zip(sizes)
            .filter_map(|(axis, size)| size.map(|size| format!("{axis} {size}")))
            .collect();
        let sizes = format!("{} = {product}", known.join(" x "));
        TopologyError::World { sizes, world }
    };
    let whole = u128::from(world);
    let too_large = product > u128::from(u32::MAX) + 1;
    let fits = match open {
        Some(_) => product > 0 && whole.is_multiple_of(product),
        None if exact => product == whole,
        None => product >= whole,
    };
    if too_large || !fits {
        return Err(words());
    }
    let sizes = sizes.map(|size| size.map_or((whole / product) as usize, |size| size as usize));
    Ok(Sizes {
        tp: sizes[TP],
        cp: sizes[CP],
        ep: 1,
        dp: sizes[DP],
        pp: sizes[PP],
    })
}

/// Expert groups lie inside a stage, across any of its axes: how far the tensor axis takes part is not known.
fn check_experts(ep: Option<u32>, sizes: &Sizes, world: u64) -> Result<(), TopologyError> {
    let stage = world / (sizes.pp as u64).max(1);
    match ep {
        Some(ep) if !stage.is_multiple_of(u64::from(ep)) => Err(TopologyError::World {
            sizes: format!("ep {ep} x pp {} = {}", sizes.pp, u64::from(ep) * sizes.pp as u64),
            world,
        }),
        _ => Ok(()),
    }
}

/// The first rank order, Megatron-LM's own before any other, that agrees with every row.
fn explaining_order(rows: &Positions, sizes: Sizes, world: u64) -> Option<(String, Layout)> {
    let mut orders = vec![DEFAULT_ORDER.to_owned(), "tp-cp-ep-pp-dp".to_owned()];
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| *c != a && *c != b) {
                let d = 6 - a - b - c;
                orders.push([a, b, c, d].map(|axis| AXES[axis]).join("-"));
            }
        }
    }
    orders.into_iter().find_map(|order| {
        let layout = Layout::new(&order, sizes).ok()?;
        let explains = |(&rank, known): (&u32, &Known)| differing(known, coordinates(&layout, rank)).is_none();
        (layout.ranks() as u64 >= world && rows.of_rank.iter().all(explains)).then_some((order, layout))
    })
}

/// The first axis on which a row disagrees, with its position.
fn differing(known: &Known, at: [u32; 4]) -> Option<(usize, u32)> {
    (0..AXES.len()).find_map(|axis| Some((axis, known[axis].filter(|&position| position != at[axis])?)))
}

fn as_array(sizes: Sizes) -> [usize; 4] {
    [sizes.tp, sizes.cp, sizes.dp, sizes.pp]
}

/// Positions are below the sizes, which are `u32`.
fn coordinates(layout: &Layout, rank: u32) -> [u32; 4] {
    let at = layout.coordinates(rank as usize);
    [at.tp, at.cp, at.dp, at.pp].map(|position| position as u32)
}

fn place(layout: &Layout, sizes: Sizes, rank: u32) -> Place {
    let [tp, cp, dp, pp] = coordinates(layout, rank);
    Place {
        stage: pp,
        pipeline: dp,
        member: tp + sizes.tp as u32 * cp,
    }
}

#[cfg(test)]
#[path = "stated_tests.rs"]
mod tests;

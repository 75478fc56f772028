//! Kinds whose network is at fault: cards, links and nodes, alone or beside something else.

use std::collections::BTreeSet;

use super::draw::{Draw, Shape};
use super::healthy::with_heavy_stage;
use crate::contract::rank_order::{Coordinates, Layout};
use crate::evaluation::simulate::faults::{LinkFactor, NodeFactor, RankFactor};
use crate::evaluation::simulate::{Label, Scenario};

/// How often a job is drawn before it is taken as it is.
const TRIES: usize = 40;
/// Of two faults one costs at least this much more than the other, else either is the right cause.
const CLEARLY: f64 = 1.5;
/// Another order of the axes, which a reader without the rows of parallel groups can't know.
const OTHER_ORDER: &str = "tp-pp-dp";
/// Order of the axes in which a replica lies on neighbouring nodes, so that some links stay inside one.
const REPLICA_BY_REPLICA: &str = "tp-cp-pp-dp";

/// A job of several stages with its single calls, and links that differ and vary as its level says.
pub fn linked(draw: &mut Draw, fits: impl Fn(Shape) -> bool) -> Scenario {
    let shape = draw.shape(|shape| shape.pp >= 2 && shape.stage_ranks() >= 4 && fits(shape));
    let job = draw.healthy(shape);
    let hard = draw.hard();
    Scenario {
        trace: true,
        transfer_noise: if hard {
            draw.scale(0.05, 0.25)
        } else {
            draw.between(0.03, 0.1)
        },
        transfer_outliers: if hard { draw.one_of(&[0.001, 0.01, 0.03]) } else { 0.001 },
        link_spread: if hard {
            draw.between(0.02, 0.06)
        } else {
            draw.between(0.01, 0.03)
        },
        ..job
    }
}

fn any(draw: &mut Draw) -> Scenario {
    linked(draw, |_| true)
}

/// A job some of whose links stay inside a node and are 3 to 12 times as fast.
pub fn with_nodes_between(draw: &mut Draw) -> Scenario {
    let replicas = draw.chance(0.5);
    let job = if replicas {
        linked(draw, |shape| shape.tp < 8 && shape.tp * shape.pp > 8)
    } else {
        linked(draw, |shape| shape.stage_ranks() < 8 && shape.ranks() > 8)
    };
    Scenario {
        order: if replicas {
            REPLICA_BY_REPLICA.to_owned()
        } else {
            job.order
        },
        intra_node_seconds: Some(job.transfer_seconds / draw.scale(3.0, 12.0)),
        ..job
    }
}

/// A job with an interleaved schedule, with and without overlap.
pub fn interleaved(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    Scenario {
        virtual_stages: draw.one_of(&[2, 2, 3, 4]),
        overlap_p2p: job.pp == 2 || draw.chance(0.4),
        microbatches: job.microbatches.next_multiple_of(job.pp),
        ..job
    }
}

/// Both ends of every link over the network, the earlier stage first.
fn links(job: &Scenario) -> Vec<(usize, usize)> {
    let Ok(layout) = Layout::new(&job.order, job.sizes()) else {
        return Vec::new();
    };
    let next = |rank| {
        let at = layout.coordinates(rank);
        let pp = (at.pp + 1) % job.pp;
        (pp > 0 || job.interleaved()).then(|| layout.rank(Coordinates { pp, ..at }))
    };
    (0..job.ranks())
        .filter_map(|rank| next(rank).map(|next| (rank, next)))
        .filter(|&(one, other)| job.over_network(one, other))
        .collect()
}

#[derive(Debug, Clone, Copy)]
enum FaultSite {
    Send,
    Recv,
    Link,
    OneWay,
    Node,
}

const FAULT_SITES: &[FaultSite] = &[
    FaultSite::Send,
    FaultSite::Recv,
    FaultSite::Link,
    FaultSite::OneWay,
    FaultSite::Node,
];

/// One more fault of the network, 3 to 30 times the transfer time, every factor alike.
fn with_fault(draw: &mut Draw, job: Scenario, place: FaultSite) -> Scenario {
    let factor = draw.scale(3.0, 30.0);
    with_fault_by(draw, job, place, factor)
}

fn with_fault_by(draw: &mut Draw, mut job: Scenario, place: FaultSite, factor: f64) -> Scenario {
    let links = links(&job);
    // Every shape that is drawn has links over the network.
    let Some(&(mut ends)) = links.get(draw.below(links.len())) else {
        return job;
    };
    if draw.chance(0.5) {
        ends = (ends.1, ends.0);
    }
    let (a, b) = ends;
    match place {
        FaultSite::Send => job.slow_send.push(RankFactor { rank: a, factor }),
        FaultSite::Recv => job.slow_recv.push(RankFactor { rank: a, factor }),
        FaultSite::Link => job.slow_links.push(LinkFactor { a, b, factor }),
        FaultSite::OneWay => job.slow_links_one_way.push(LinkFactor { a, b, factor }),
        FaultSite::Node => {
            let ends: BTreeSet<usize> = links.iter().flat_map(|&(a, b)| [job.node(a), job.node(b)]).collect();
            let nodes: Vec<usize> = ends
                .into_iter()
                .filter(|&node| leaves_peers(&links, |rank| job.node(rank) == node))
                .collect();
            match nodes.get(draw.below(nodes.len())) {
                Some(&node) => job.slow_node_networks.push(NodeFactor { node, factor }),
                None => job.slow_send.push(RankFactor { rank: a, factor }),
            }
        }
    }
    job
}

/// Whether at least half of the links do not touch the ranks at fault. Where most are slow, or all, from the first step
/// on, nothing tells them from a job with a slow network throughout.
fn leaves_peers(links: &[(usize, usize)], at_fault: impl Fn(usize) -> bool) -> bool {
    let touched = links.iter().filter(|(a, b)| at_fault(*a) || at_fault(*b)).count();
    2 * touched <= links.len()
}

fn with_any_fault(draw: &mut Draw, job: Scenario) -> Scenario {
    let place = draw.one_of(FAULT_SITES);
    with_fault(draw, job, place)
}

pub fn one_way(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_fault(draw, job, FaultSite::OneWay)
}

pub fn node(draw: &mut Draw) -> Scenario {
    let job = linked(draw, |shape| shape.ranks() >= 32);
    with_fault(draw, job, FaultSite::Node)
}

/// Of every sort and strength, on ranks of few and many peers.
pub fn faint(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    let place = draw.one_of(FAULT_SITES);
    let factor = draw.between(3.0, 5.0);
    with_fault_by(draw, job, place, factor)
}

pub fn any_fault(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_any_fault(draw, job)
}

pub fn onset(draw: &mut Draw) -> Scenario {
    let job = any_fault(draw);
    Scenario {
        onset: Some(Draw::counted(&job, draw.between(0.25, 0.65))),
        ..job
    }
}

pub fn until(draw: &mut Draw) -> Scenario {
    let job = any_fault(draw);
    Scenario {
        until: Some(Draw::counted(&job, draw.between(0.5, 0.8))),
        ..job
    }
}

pub fn flaky(draw: &mut Draw) -> Scenario {
    Scenario {
        flaky: Some(0.5),
        ..any_fault(draw)
    }
}

/// Draws until `fits`, which it nearly always does soon.
fn until_fits(
    draw: &mut Draw,
    mut make: impl FnMut(&mut Draw) -> Scenario,
    fits: impl Fn(&Scenario, &Label) -> bool,
) -> Scenario {
    let mut job = make(draw);
    for _ in 0..TRIES {
        if Label::of(&job).is_ok_and(|label| fits(&job, &label)) {
            break;
        }
        job = make(draw);
    }
    job
}

/// One cause clearly costs more than the other.
fn clear(label: &Label) -> bool {
    let mut costs: Vec<f64> = label.cost_seconds.values().copied().collect();
    costs.sort_by(f64::total_cmp);
    match costs.as_slice() {
        [.., less, most] => *most > 0.0 && *most >= CLEARLY * less.max(0.0),
        _ => true,
    }
}

pub fn beside_rank(draw: &mut Draw) -> Scenario {
    let make = |draw: &mut Draw| {
        let job = linked(draw, |shape| shape.dp >= 3 && shape.ranks() >= 24);
        let job = with_any_fault(draw, job);
        let rank = draw.below(job.ranks());
        let factor = draw.one_of(&[1.12, 1.2, 1.35, 1.6]);
        Scenario {
            slow_ranks: vec![RankFactor { rank, factor }],
            ..job
        }
    };
    // On a node of its own, so that naming it is right for one reason only.
    until_fits(draw, make, |_, label| {
        let own = label.network_places.iter().map(Vec::len).sum::<usize>() + 1;
        clear(label) && label.slow_nodes.len() >= own
    })
}

pub fn two(draw: &mut Draw) -> Scenario {
    let make = |draw: &mut Draw| {
        let job = linked(draw, |shape| shape.ranks() >= 32);
        let job = with_any_fault(draw, job);
        with_any_fault(draw, job)
    };
    until_fits(draw, make, |job, label| {
        let nodes: usize = label.network_places.iter().map(Vec::len).sum();
        let peers = leaves_peers(&links(job), |rank| label.slow_ranks.contains(&rank));
        peers && label.network_places.len() == 2 && label.slow_nodes.len() == nodes
    })
}

pub fn beside_stage(draw: &mut Draw) -> Scenario {
    let job = any_fault(draw);
    let stage = draw.below(job.pp);
    with_heavy_stage(draw, job, stage)
}

pub fn beside_sequences(draw: &mut Draw) -> Scenario {
    Scenario {
        sequence_spread: draw.between(0.05, 0.14),
        ..any_fault(draw)
    }
}

pub fn between_nodes(draw: &mut Draw) -> Scenario {
    let job = with_nodes_between(draw);
    with_any_fault(draw, job)
}

pub fn in_interleaved(draw: &mut Draw) -> Scenario {
    let job = interleaved(draw);
    with_any_fault(draw, job)
}

pub fn beside_stage_interleaved(draw: &mut Draw) -> Scenario {
    let job = in_interleaved(draw);
    let stage = draw.below(job.pp);
    with_heavy_stage(draw, job, stage)
}

/// Rows of calls lost or damaged.
pub fn with_damage(draw: &mut Draw, job: Scenario) -> Scenario {
    Scenario {
        dirty: 0.003,
        dirty_trace: draw.scale(0.003, 0.1),
        ..job
    }
}

pub fn damaged(draw: &mut Draw) -> Scenario {
    let job = any_fault(draw);
    with_damage(draw, job)
}

pub fn no_topology(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    let job = without_topology(draw, job);
    with_any_fault(draw, job)
}

/// No rows of parallel groups, in three of ten jobs another order than the usual.
pub fn without_topology(draw: &mut Draw, job: Scenario) -> Scenario {
    Scenario {
        topology: false,
        order: if draw.chance(0.3) {
            OTHER_ORDER.to_owned()
        } else {
            job.order
        },
        ..job
    }
}

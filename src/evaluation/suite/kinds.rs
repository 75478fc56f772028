//! The list of kinds.

use super::draw::Draw;
use super::{Group, Kind, healthy, network, slow, traced};
use crate::evaluation::simulate::Scenario;

const fn kind(name: &'static str, build: fn(&mut Draw) -> Scenario, about: &'static str) -> Kind {
    Kind {
        name,
        about,
        group: Group::Ranks,
        build,
    }
}

const fn faulty(name: &'static str, build: fn(&mut Draw) -> Scenario, about: &'static str) -> Kind {
    Kind {
        group: Group::Network,
        ..kind(name, build, about)
    }
}

const fn sound(name: &'static str, build: fn(&mut Draw) -> Scenario, about: &'static str) -> Kind {
    Kind {
        group: Group::SoundNetwork,
        ..kind(name, build, about)
    }
}

/// Every kind, in the order of the reports.
pub const KINDS: &[Kind] = &[
    kind("healthy", healthy::healthy, "nothing wrong"),
    kind(
        "healthy-noisy",
        healthy::noisy,
        "calls vary by 1.5-5 %, 1 % of them take 1.5-3x",
    ),
    kind(
        "healthy-large-spread",
        healthy::large_spread,
        "ranks differ lastingly by 0.9-1.3 % (sd)",
    ),
    kind("stall", healthy::stall, "one step takes 20-90 s longer on all ranks"),
    kind("transient", healthy::transient, "one rank is 2x slow for 1-3 steps"),
    kind("transient-pp2", healthy::transient_pp2, "the same with two stages"),
    kind(
        "stage-imbalance-first",
        healthy::first_stage,
        "the first stage has 1.3-1.8x the work",
    ),
    kind(
        "stage-imbalance-middle",
        healthy::middle_stage,
        "a middle stage has more work",
    ),
    kind(
        "stage-imbalance-last",
        healthy::last_stage,
        "the last stage has more work",
    ),
    kind(
        "seq-imbalance",
        healthy::sequences,
        "replicas' loads vary by 5-14 % from step to step",
    ),
    kind(
        "moe",
        healthy::experts,
        "ranks' expert loads vary by 4-9 % from step to step",
    ),
    kind("gpu-slow", slow::one, "one rank computes 8-100 % slower"),
    kind("gpu-faint", slow::faint, "one rank computes 3.5-5 % slower"),
    kind(
        "gpu-slow-onset",
        slow::onset,
        "one rank from a quarter to two thirds of the window on",
    ),
    kind(
        "gpu-slow-until",
        slow::until,
        "one rank until a half to four fifths of the window",
    ),
    kind("gpu-flaky", slow::flaky, "one rank in every second step"),
    kind(
        "two-slow",
        slow::two,
        "two ranks, of different strength when noise is hard",
    ),
    kind("three-slow", slow::three, "three ranks"),
    kind("node-slow", slow::node, "all ranks of a node"),
    kind("two-nodes-slow", slow::two_nodes, "all ranks of two nodes"),
    kind("majority", slow::majority, "more than half of the nodes, one stage"),
    kind("gpu-slow-stage", slow::beside_stage, "one rank beside a heavy stage"),
    kind(
        "gpu-slow-seq",
        slow::beside_sequences,
        "one rank 20-100 % slower, loads vary by 5-14 %",
    ),
    kind(
        "gpu-faint-seq",
        slow::faint_beside_sequences,
        "one rank 6-12 % slower, loads vary by 5-14 %",
    ),
    kind(
        "moe-slow",
        slow::beside_experts,
        "one rank 20-100 % slower, expert loads vary by 4-9 %",
    ),
    kind(
        "loader",
        slow::loader,
        "a first-stage rank's loader adds 12-60 % to its forward pass",
    ),
    kind("loader-last", slow::loader_last, "the same on the last stage"),
    kind(
        "rerun",
        slow::rerun,
        "the last third ran twice, the lost run with another fault",
    ),
    kind("rerun-healthy-now", healthy::rerun, "only the lost run had a fault"),
    kind(
        "dirty",
        slow::dirty,
        "one rank; rows lost, doubled, NaN or negative, a timer 0 on some ranks",
    ),
    kind(
        "no-topology",
        slow::no_topology,
        "one rank; no rows of parallel groups, several stages",
    ),
    kind("order", slow::order, "one rank; rank order tp, pp, dp"),
    kind(
        "no-qkv",
        slow::no_qkv,
        "one rank of a tensor-parallel group without a timer of its own",
    ),
    kind("dp1-onset", slow::alone, "one rank without peers, from some step on"),
    kind("dp2", slow::dp2, "one rank with a single peer, 12-100 % slower"),
    kind(
        "short-window",
        slow::short,
        "one rank in a job of 20 iterations, start-up included",
    ),
    faulty("nic-send", slow::nic_send, "what one rank sends takes 8-30x"),
    faulty("nic-recv", slow::nic_recv, "what one rank receives takes 8-30x"),
    faulty("slow-link", slow::link, "a link between two stages takes 8-30x"),
    faulty("link-one-way", network::one_way, "a link takes 3-30x in one direction"),
    faulty(
        "node-network",
        network::node,
        "all that goes over one node's network takes 3-30x",
    ),
    faulty("network-any", network::any_fault, "any of these, 3-30x"),
    faulty("network-faint", network::faint, "any of these, 3-5x"),
    faulty(
        "network-onset",
        network::onset,
        "any from a quarter to two thirds of the window on",
    ),
    faulty(
        "network-until",
        network::until,
        "any until a half to four fifths of the window",
    ),
    faulty("network-flaky", network::flaky, "any in every second step"),
    faulty("network-two", network::two, "any two on different nodes"),
    faulty(
        "network-gpu",
        network::beside_rank,
        "any beside a rank of another node that computes 12-60 % slower",
    ),
    faulty("network-stage", network::beside_stage, "any beside a heavy stage"),
    faulty("network-seq", network::beside_sequences, "any, loads vary by 5-14 %"),
    faulty(
        "network-nodes",
        network::between_nodes,
        "any between nodes, links inside a node are 3-12x as fast",
    ),
    faulty(
        "network-interleaved",
        network::in_interleaved,
        "any, the schedule is interleaved",
    ),
    faulty(
        "network-interleaved-stage",
        network::beside_stage_interleaved,
        "the same beside a heavy stage",
    ),
    faulty(
        "network-dirty",
        network::damaged,
        "any; 0.3-10 % of the rows with calls lost or damaged",
    ),
    faulty(
        "network-no-topology",
        network::no_topology,
        "any; no rows of parallel groups, order mostly the usual",
    ),
    sound("traced", traced::healthy, "nothing wrong"),
    sound(
        "traced-tails",
        traced::tails,
        "transfers vary by 10-40 %, 0.5-5 % take 2-30x, links differ by 3-8 %",
    ),
    sound(
        "traced-nodes",
        traced::between_nodes,
        "links inside a node are 3-12x as fast",
    ),
    sound("traced-interleaved", traced::interleaved, "the schedule is interleaved"),
    sound(
        "traced-interleaved-gpu",
        traced::slow_rank_interleaved,
        "the same, one rank computes 8-100 % slower",
    ),
    sound(
        "traced-interleaved-stage",
        traced::heavy_stage_interleaved,
        "the same, one stage has 1.3-1.8x the work",
    ),
    sound("traced-gpu", traced::slow_rank, "one rank computes 8-100 % slower"),
    sound("traced-two", traced::two_slow_ranks, "two ranks compute slowly"),
    sound(
        "traced-gpu-nodes",
        traced::slow_rank_between_nodes,
        "the same, links inside a node are 3-12x as fast",
    ),
    sound(
        "traced-gpu-onset",
        traced::slow_rank_onset,
        "one rank from some step on",
    ),
    sound("traced-node", traced::slow_node, "all ranks of a node compute slowly"),
    sound("traced-loader", traced::loader, "a rank's loader is slow"),
    sound("traced-stage", traced::heavy_stage, "one stage has 1.3-1.8x the work"),
    sound("traced-seq", traced::sequences, "replicas' loads vary by 5-14 %"),
    sound("traced-moe", traced::experts, "expert loads vary by 4-9 %"),
    sound(
        "traced-transient",
        traced::transient,
        "one rank is 2x slow for 1-3 steps",
    ),
    sound("traced-stall", traced::stall, "one step takes 20-90 s longer"),
    sound("traced-rerun", traced::rerun, "only the lost run had a fault"),
    sound(
        "traced-dirty",
        traced::damaged,
        "0.3-10 % of the rows with calls lost or damaged",
    ),
    sound("traced-no-topology", traced::no_topology, "no rows of parallel groups"),
];

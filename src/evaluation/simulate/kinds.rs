//! The word for the kind of a simulated job that was given none.

use super::scenario::Scenario;
use crate::contract::rank_order::DEFAULT_ORDER;

/// The first kind that the scenario is one of: what changes a job most comes first.
pub(super) fn kind(scenario: &Scenario) -> &'static str {
    let s = scenario;
    let slow_node_ranks = s.slow_nodes.len() * s.ranks_per_node;
    let compute = !s.slow_ranks.is_empty() || !s.slow_nodes.is_empty();
    let heavy = !s.heavy_stages.is_empty();
    let choices = [
        (s.rerun.is_some(), "rerun"),
        (s.dirty > 0.0, "dirty"),
        (!s.topology, "no-topology"),
        (s.order != DEFAULT_ORDER, "order"),
        (2 * slow_node_ranks > s.ranks(), "majority"),
        (!s.slow_nodes.is_empty(), "node-slow"),
        (compute && heavy, "gpu-slow-stage"),
        (compute && s.sequence_spread > 0.0, "gpu-slow-seq"),
        (compute && s.expert_spread > 0.0, "moe-slow"),
        (s.slow_ranks.len() > 1, "two-slow"),
        (compute && s.flaky.is_some(), "gpu-flaky"),
        (compute && s.onset.is_some(), "gpu-slow-onset"),
        (s.slow_ranks.first().is_some_and(|f| f.factor < 1.06), "gpu-faint"),
        (compute, "gpu-slow"),
        (!s.slow_send.is_empty(), "nic-send"),
        (!s.slow_recv.is_empty(), "nic-recv"),
        (!s.slow_links.is_empty(), "link-slow"),
        (!s.slow_links_one_way.is_empty(), "link-one-way"),
        (!s.slow_node_networks.is_empty(), "node-network"),
        (!s.slow_loaders.is_empty(), "loader"),
        (heavy, "stage-imbalance"),
        (s.sequence_spread > 0.0, "seq-imbalance"),
        (s.expert_spread > 0.0, "moe"),
        (!s.stalls.is_empty(), "stall"),
        (!s.transients.is_empty(), "transient"),
        (s.outliers > 0.0, "healthy-noisy"),
    ];
    choices
        .into_iter()
        .find_map(|(holds, kind)| holds.then_some(kind))
        .unwrap_or("healthy")
}

//! Every number by which communication is judged, with its reason.

use crate::contract::constant::constants;

constants! {
    /// Least factor of a slow transfer, or of a slow collective beside many like it, over the usual one. Routes through a
    /// fabric differ by some ten per cent, and other traffic comes and goes; half the speed is a fault.
    pub LEAST_FACTOR: f64 = 2.0;
    /// Least factor between neighbours in the order of the levels that parts slow flows from usual ones.
    pub GAP: f64 = 1.5;
    /// Share of the flows of a kind that must be usual.
    pub LEAST_USUAL: f64 = 0.25;
    /// Fewest flows of a kind that can tell what is usual.
    pub FEWEST: usize = 4;
    /// Standard deviations of the usual flows that a slow one must be away: levels of many flows with heavy tails.
    pub DEVIATIONS: f64 = 6.0;
    /// Usual lasting spread of flows (log): few can't tell their own.
    pub USUAL_SPREAD: f64 = 0.1;
    /// How many flows' worth of trust [`USUAL_SPREAD`] gets.
    pub USUAL_SPREAD_FLOWS: f64 = 4.0;
    /// Share of the excess that the fused calls of the steady state must show too, where there are any.
    pub FUSED_SHARE: f64 = 0.5;
    /// Fewest iterations at the end of the window that are looked at alone.
    pub LEAST_RECENT: usize = 5;
    /// Share of the iterations, at the end of the window, that is looked at alone: a fault that began late.
    pub RECENT_SHARE: f64 = 0.25;
    /// Quantile of the flows of a kind, from below, that is what such a flow takes in an iteration: most may be slow.
    pub FLOW_QUANTILE: f64 = 0.25;
    /// Quantile of a flow's iterations, from below, that is its level: a fault of a third of the window shows.
    pub LEVEL_QUANTILE: f64 = 0.75;
    /// A quartile of normal values has so many times the error of their mean.
    pub QUARTILE_ERROR: f64 = 1.4;
    /// Quantile of the replicas' ways, from below, that is the way between two stages; with few of them the best one.
    pub REPLICA_QUANTILE: f64 = 0.25;
    /// Share of the window that must lie before a fault for an onset, and behind it for an end.
    pub END_SHARE: f64 = 0.25;
    /// Share of the steps (from below) at which a stage pair's own way is read: a fault that begins or ends inside the window
    /// leaves a quarter of it.
    pub WAY_QUANTILE: f64 = 0.25;
    /// Fewest replicas whose links tell the way between two stages.
    pub WAY_REPLICAS: usize = 2;
    /// Factor over the other groups from which a collective tells an end of a link.
    pub TELLING_FACTOR: f64 = 1.5;
    /// Least factor of a collective over those of other stages, or over its own before. Half the speed of the network is 2
    /// less what a collective takes besides the network.
    pub LEAST_FACTOR_OF_FEW: f64 = 1.5;
    /// Share (of the logarithm) of what a stage computes longer than another that its collectives may take longer for it: more
    /// layers are more parameters, but the output layer computes much and holds no more than the first stage's embedding.
    pub WORK_SHARE: f64 = 0.5;
    /// Least factor of all groups together over themselves before: without a group beside them that stays as it was, work that
    /// changed is the likelier reason.
    pub LEAST_FACTOR_OF_ALL: f64 = 2.0;
    /// Share of a collective's steps (from below) that is its better level.
    pub BETTER_QUANTILE: f64 = 0.15;
    /// Times the noise from step to step that a change in time must exceed.
    pub CHANGE_DEVIATIONS: f64 = 4.0;
    /// Share (of the logarithm) of the least factor that a change over others must show in the group's own time too.
    pub OWN_SHARE: f64 = 0.5;
    /// Fewest steps on each side of a change.
    pub LEAST_SIDE: usize = 5;
    /// Share of a group's members whose durations an iteration must have: more are lost seldom, and then the one that came
    /// last is hardly ever among them.
    pub LEAST_PRESENT: f64 = 0.5;
    /// Largest duration over the smallest in a group whose members agree: they began together, after a barrier.
    pub AGREE: f64 = 1.2;
    /// Share of the steps in which all groups agree where there is a barrier.
    pub AGREE_SHARE: f64 = 0.8;
    /// Share of the step that a slow collective must cost to be a fault: less is latency that no step feels.
    pub LEAST_COST: f64 = 0.001;
    /// Share of the flows of a node that must be slow: a route may miss the fault.
    pub SHARE_OF_NODE: f64 = 0.8;
    /// Most links that may be slow without a rank or node behind them; see [`SHARE_OF_LINKS`].
    pub MOST_LINKS: usize = 3;
    /// Least share of all links that is too many: beyond both they differ in kind, as those inside and between racks.
    pub SHARE_OF_LINKS: f64 = 0.1;
    /// Share of the usual transfer that an estimate is at least: it is a difference, and noise takes it below 0.
    pub LEAST_ARRIVAL: f64 = 0.1;
    /// Share of the steps between the first and the last slow one that are slow where something is slow all the time.
    pub STEADY: f64 = 0.9;
    /// Share of the iterations from the first slow one on that must be slow for it to be the beginning.
    pub SHARE_SINCE: f64 = 0.8;
    /// Least share of the step that is taken for what it would be without a fault.
    pub LEAST_REST: f64 = 0.05;
    /// Standard errors by which the growth of the steps may be larger than it looks.
    pub GROWTH_ERRORS: f64 = 2.0;
}

/// How many of a window's iterations, at its end, are looked at alone.
pub fn recent_steps(steps: usize) -> usize {
    LEAST_RECENT.get().max((RECENT_SHARE.get() * steps as f64) as usize)
}

//! What a headline may also be, and what to do next: what an engineer who has seen it before would say.

use super::Headline;
use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind, Lasting, Shape, words};

/// Most GPUs that one machine holds.
const GPUS_OF_A_NODE: usize = 16;

/// What looks the same in the timers; `None` where nothing does.
pub(super) fn may_also_be(headline: &Headline, findings: &[&Finding]) -> Option<String> {
    let level = findings.iter().any(|finding| finding.shape == Shape::Level);
    let words = match (headline.kind, headline.cause) {
        (FindingKind::OneOfGroup, _) => "the timers can't tell which of them: they wait for each other in every pass",
        (FindingKind::SlowRank, Cause::Compute) if level => {
            "a slower kind of machine, cards that are shared, or a power or cooling limit of that part of the cluster"
        }
        (FindingKind::SlowRank, Cause::Compute) if headline.whole_nodes && headline.ranks.len() > 1 => {
            "a power limit, cooling or the CPUs of the node rather than its GPUs; a node of another kind"
        }
        (FindingKind::SlowRank, Cause::Compute) if headline.lasting == Some(Lasting::Recurring) => {
            "another process that comes and goes, or a GPU that gets too hot from time to time"
        }
        (FindingKind::SlowRank, Cause::Compute) => "another process on that GPU or its CPU cores",
        (FindingKind::SlowRank, Cause::DataLoading) => {
            "slow storage as seen from that node, or too few loader processes there"
        }
        (FindingKind::SlowLink, _) => "the network card or port of one of the two ends",
        (FindingKind::SlowNetwork, _) => "the switch port or cable behind the network card",
        (FindingKind::JobWide, _) => "one rank that all others wait for in a way that no timer shows",
        _ => return None,
    };
    Some(words.to_owned())
}

/// What to do next, the first thing first.
pub(super) fn next(job: &Job, headline: &Headline, findings: &[&Finding]) -> Vec<String> {
    let nodes = || {
        if headline.nodes.is_empty() {
            "their nodes".to_owned()
        } else {
            words::nodes(&headline.nodes)
        }
    };
    let level = findings.iter().any(|finding| finding.shape == Shape::Level);
    let steps: Vec<String> = match (headline.kind, headline.cause) {
        (FindingKind::OneOfGroup, Cause::Compute) => vec![
            format!(
                "check clocks, temperature, power and ECC errors of {}",
                gpus(job, headline)
            ),
            "record the timer self-attention-linear-qkv in the next run: it tells ranks of a group apart".to_owned(),
        ],
        (FindingKind::SlowRank, Cause::Compute) if level => vec![format!(
            "compare the kind of GPU, driver, power limit and cooling of {} with the others'",
            nodes()
        )],
        (FindingKind::SlowRank, Cause::Compute) if headline.whole_nodes && headline.ranks.len() > 1 => vec![
            format!(
                "check power limit, cooling, CPU load and other processes on {}",
                nodes()
            ),
            "take the node out of the job if it stays slow".to_owned(),
        ],
        (FindingKind::SlowRank, Cause::Compute) => vec![
            format!(
                "check clocks, temperature, power and ECC errors of {}",
                gpus(job, headline)
            ),
            "if they look well, look for other processes there; then move the rank to another GPU and compare"
                .to_owned(),
        ],
        (FindingKind::SlowRank | FindingKind::OneOfGroup, Cause::DataLoading) => {
            vec![format!(
                "check the mount of the data and the load of the CPUs on {}",
                nodes()
            )]
        }
        (FindingKind::JobWide, Cause::DataLoading) => {
            vec!["check the storage that all nodes read from, and the number of loader processes".to_owned()]
        }
        (FindingKind::JobWide, _) => {
            vec!["check the switches that all nodes share, and what else ran on them at that time".to_owned()]
        }
        (FindingKind::SlowLink, _) => match headline.nodes.as_slice() {
            [a, b] => vec![format!(
                "swap the cable or the port between {a} and {b}; read the error counters of both ports first"
            )],
            [node] => vec![format!("check the links between the GPUs of {node} (NVLink, PCIe)")],
            _ => vec![format!("read the error counters of the ports between {}", nodes())],
        },
        (FindingKind::SlowNetwork, _) => vec![format!(
            "check network card, cable and switch port of {}: error counters, link speed",
            nodes()
        )],
        (FindingKind::Imbalance, Cause::StageImbalance) => match headline.stages.as_slice() {
            [stage] => vec![format!(
                "spread the layers anew: move a layer from stage {stage} to another stage"
            )],
            _ => vec!["spread the layers anew over the stages".to_owned()],
        },
        (FindingKind::Imbalance, Cause::DataImbalance) => {
            vec![
                "spread sequences by their length (packing, sorting in a global batch), or experts by their load"
                    .to_owned(),
            ]
        }
        (FindingKind::Suspect, _) => vec!["analyse more iterations before anybody acts on it".to_owned()],
        (FindingKind::Transient | FindingKind::Stall, _) => vec![
            "nothing, unless it comes back: compare with checkpoints, evaluation and other jobs at that time"
                .to_owned(),
        ],
        _ => Vec::new(),
    };
    steps
}

/// `GPU 5 on gpu-000`, where ranks count through the GPUs of their nodes; else `the GPUs of ranks 3 and 17`.
fn gpus(job: &Job, headline: &Headline) -> String {
    let on_node = |rank: u32| {
        let position = job.ranks.binary_search(&rank).ok()?;
        let node = &job.nodes[position];
        let mut same = job
            .ranks
            .iter()
            .zip(&job.nodes)
            .filter(|(_, other)| *other == node)
            .map(|(&rank, _)| rank);
        let first = same.next()?;
        let count = 1 + same.count();
        let in_order =
            count <= GPUS_OF_A_NODE && (first as usize).is_multiple_of(count) && ((rank - first) as usize) < count;
        (in_order && !headline.nodes.is_empty()).then(|| (rank - first, node.as_str()))
    };
    match headline.ranks.as_slice() {
        [rank] => match on_node(*rank) {
            Some((gpu, node)) => format!("GPU {gpu} on {node}"),
            None => format!("the GPU of rank {rank}"),
        },
        ranks if headline.nodes.len() == 1 => {
            let gpus: Option<Vec<u32>> = ranks.iter().map(|&rank| Some(on_node(rank)?.0)).collect();
            match gpus {
                Some(gpus) => {
                    let listed = words::ranks(&gpus);
                    format!(
                        "GPUs {} on {}",
                        listed.trim_start_matches("ranks ").trim_start_matches("rank "),
                        headline.nodes[0]
                    )
                }
                None => format!("the GPUs of {} on {}", words::ranks(ranks), headline.nodes[0]),
            }
        }
        ranks => format!("the GPUs of {}", words::ranks(ranks)),
    }
}

//! Which findings are one thing.

use std::collections::BTreeMap;

use crate::verdict::{Cause, Finding, FindingKind, Lasting, Shape};

/// Things of one kind and time that are told one by one; more are told together.
const APART: usize = 3;
/// Share of the window by which beginnings may differ and still be one.
const SAME_TIME: f64 = 0.05;

/// What findings that are one thing have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    kind: FindingKind,
    cause: Cause,
    named: bool,
    lasting: Option<Lasting>,
    /// Where it began and ended, in twentieths of the window.
    when: (i64, i64),
}

/// Positions of findings, those of one thing together; each ascending, the groups by their first finding.
pub(super) fn groups(findings: &[Finding]) -> Vec<Vec<usize>> {
    let mut alike = BTreeMap::<Alike, Vec<usize>>::new();
    let mut groups = Vec::new();
    for (place, finding) in findings.iter().enumerate() {
        if can_be_put_together(finding) {
            alike.entry(Alike::of(finding)).or_default().push(place);
        } else {
            groups.push(vec![place]);
        }
    }
    for places in alike.into_values() {
        let by_node = by_node(findings, &places);
        if by_node.len() > APART {
            groups.push(places);
        } else {
            groups.extend(by_node);
        }
    }
    groups.sort();
    groups
}

/// Whether several of its sort may be told as one: the ranks and how much say all.
fn can_be_put_together(finding: &Finding) -> bool {
    let of_ranks = match finding.kind {
        FindingKind::SlowRank
        | FindingKind::OneOfGroup
        | FindingKind::Suspect
        | FindingKind::Transient
        | FindingKind::Stall => true,
        FindingKind::SlowNetwork | FindingKind::SlowLink => true,
        FindingKind::JobWide | FindingKind::Imbalance | FindingKind::SlowSteps | FindingKind::Candidate => false,
    };
    of_ranks && finding.shape != Shape::Level
}

impl Alike {
    fn of(finding: &Finding) -> Self {
        let part = |iteration: Option<i64>| {
            let least = (SAME_TIME * finding.iterations as f64).max(1.0);
            iteration.map_or(-1, |iteration| (iteration as f64 / least).round() as i64)
        };
        // What passes at several times is still one sort of thing.
        let passes = matches!(finding.kind, FindingKind::Transient | FindingKind::Stall);
        let when = if passes {
            (0, 0)
        } else {
            (part(finding.onset), part(finding.until))
        };
        Self {
            kind: finding.kind,
            cause: finding.cause,
            named: finding.named || finding.names_nodes,
            lasting: finding.lasting,
            when,
        }
    }
}

/// Those of one single node together; the others alone.
fn by_node(findings: &[Finding], places: &[usize]) -> Vec<Vec<usize>> {
    let mut nodes = BTreeMap::<&str, Vec<usize>>::new();
    let mut groups = Vec::new();
    for &place in places {
        match findings[place].nodes.as_slice() {
            [node] => nodes.entry(node).or_default().push(place),
            _ => groups.push(vec![place]),
        }
    }
    groups.extend(nodes.into_values());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(node: &str, rank: u32, onset: Option<i64>) -> Finding {
        Finding {
            ranks: vec![rank],
            nodes: vec![node.to_owned()],
            named: true,
            onset,
            ..Finding::new(FindingKind::SlowRank, Cause::Compute, 100)
        }
    }

    #[test]
    fn a_node_is_told_once_and_many_nodes_together() {
        let two = [on("a", 0, None), on("b", 8, None), on("a", 1, None)];
        assert_eq!(groups(&two), [vec![0, 2], vec![1]]);
        let many: Vec<Finding> = (0..6).map(|rank| on(&format!("n{rank}"), rank, None)).collect();
        assert_eq!(groups(&many), [vec![0, 1, 2, 3, 4, 5]]);
    }

    #[test]
    fn what_began_at_another_time_is_another_thing() {
        let findings = [on("a", 0, Some(60)), on("a", 1, Some(61)), on("a", 2, Some(20))];
        assert_eq!(groups(&findings), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn imbalances_and_levels_stay_apart() {
        let level = Finding {
            shape: Shape::Level,
            ..on("a", 0, None)
        };
        let stage = Finding::new(FindingKind::Imbalance, Cause::StageImbalance, 100);
        assert_eq!(
            groups(&[level, on("a", 1, None), stage.clone(), stage]),
            [[0], [1], [2], [3]]
        );
    }
}

//! The detector of what has passed: units above their peers for a while too short to last, or far above them for a few
//! steps. It names nobody.

use super::detector::{Detector, Seen, who};
use crate::contract::constant::constants;
use crate::stats::{mean, median};
use crate::verdict::{Cause, Finding, FindingKind, words};

constants! {
    /// Fewest steps of a spell; one alone may be anything.
    LEAST_STEPS: usize = 2;
}

/// Finds spells.
pub(super) struct Transients;

impl Detector for Transients {
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding> {
        (0..seen.units.len()).filter_map(|unit| spell(seen, unit)).collect()
    }
}

fn spell(seen: &Seen<'_>, unit: usize) -> Option<Finding> {
    let own = &seen.evidence.units;
    let judged = &own.verdicts.rows[unit];
    if judged.fault.is_some() || judged.passing.is_empty() {
        return None;
    }
    let cells = own.factors.row(unit);
    let usual = median(cells.iter().copied());
    let mut slow = vec![false; cells.len()];
    for part in &judged.passed {
        slow[part.clone()].fill(true);
    }
    for part in &judged.passing {
        if mean(cells[part.clone()].iter().copied()) - usual > seen.settings.transient_floor {
            slow[part.clone()].fill(true);
        }
    }
    let steps: Vec<usize> = (0..slow.len()).filter(|&step| slow[step]).collect();
    if steps.len() < LEAST_STEPS.get().div_ceil(seen.settings.column()) {
        return None;
    }
    let mut finding = seen.finding(FindingKind::Transient, Cause::None);
    seen.accuse(&mut finding, &seen.units.members[unit], &slow);
    finding.factor = Some(median(steps.iter().map(|&step| cells[step] - usual)).exp());
    seen.shows_in(&mut finding, &slow);
    let recovered = slow.last() == Some(&false);
    finding.ended = Some(recovered);
    let span = match (finding.first_iteration, finding.last_iteration) {
        (Some(first), Some(last)) if first < last => format!(" ({first}-{last})"),
        (Some(first), _) => format!(" ({first})"),
        _ => String::new(),
    };
    finding.says = format!(
        "{} computed {:.1} % slower for {}{span} and {}",
        who(&finding),
        100.0 * (finding.factor.unwrap_or(1.0) - 1.0),
        words::number(finding.slow_iterations.unwrap_or(0), "iteration"),
        if recovered {
            "recovered"
        } else {
            "may still: the window ends too soon to tell"
        },
    );
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};
    use crate::verdict::{Cause, FindingKind};

    #[test]
    fn a_spell_is_told_and_names_nobody() {
        let spell = |rank, step| if rank == 4 && (9..12).contains(&step) { 2.0 } else { 1.0 };
        let verdict = verdict(&job(1, 16, 30, spell));
        assert_eq!((verdict.anomalies, verdict.cause), (vec![], Cause::None));
        let finding = &verdict.findings[0];
        assert_eq!((finding.kind, finding.named), (FindingKind::Transient, false));
        assert_eq!((finding.first_iteration, finding.last_iteration), (Some(9), Some(11)));
        assert_eq!(
            finding.says,
            "rank 4 on node n0 computed 99.2 % slower for 3 iterations (9-11) and recovered"
        );
    }

    #[test]
    fn a_long_spell_that_is_no_fault_is_told_however_faint() {
        let spell = |rank, step| {
            if rank == 4 && (200..240).contains(&step) {
                1.15
            } else {
                1.0
            }
        };
        let verdict = verdict(&job(1, 16, 400, spell));
        assert!(verdict.anomalies.is_empty());
        let finding = &verdict.findings[0];
        assert_eq!(
            (finding.first_iteration, finding.last_iteration),
            (Some(200), Some(239))
        );
    }

    #[test]
    fn what_lasts_to_the_end_has_not_recovered() {
        let late = |rank, step| if rank == 4 && step >= 27 { 2.0 } else { 1.0 };
        let verdict = verdict(&job(1, 16, 30, late));
        assert!(verdict.anomalies.is_empty());
        assert!(
            verdict.findings[0].says.contains("may still:"),
            "{:?}",
            verdict.findings[0]
        );
    }
}

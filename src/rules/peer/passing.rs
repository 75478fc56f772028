//! What has passed: units far above their own usual for a few steps. It names nobody.

use super::settings::PeerSettings;
use super::suspects::{Evidence, Suspect};
use crate::stats::median;

/// Fewest steps of a spell.
const LEAST_STEPS: usize = 2;

/// A unit's spell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spell {
    pub unit: usize,
    /// The steps, by place.
    pub steps: Vec<usize>,
    /// Median excess over its own usual in them (log).
    pub excess: f64,
}

/// Units with [`LEAST_STEPS`] steps at least far above their own usual, but for the suspects.
pub(super) fn spells(evidence: &Evidence, suspects: &[Suspect], settings: &PeerSettings) -> Vec<Spell> {
    let own = &evidence.units.own;
    let floor = settings.transient_floor.max(8.0 * own.standard_error(1));
    let about = own.factors.about_row_medians();
    let found = about.map(|unit, cells| {
        let steps: Vec<usize> = (0..cells.len()).filter(|&step| cells[step] > floor).collect();
        (steps.len() >= LEAST_STEPS.div_ceil(settings.column())).then(|| Spell {
            unit,
            excess: median(steps.iter().map(|&step| cells[step])),
            steps,
        })
    });
    let mut spells: Vec<Spell> = found.into_iter().flatten().collect();
    let mut left_out = vec![false; own.factors.rows()];
    suspects.iter().for_each(|suspect| left_out[suspect.unit] = true);
    spells.retain(|spell| !left_out[spell.unit]);
    spells
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict, with_steps};
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
            "rank 4 on node n0 was slow for 3 iterations and recovered"
        );
    }

    #[test]
    fn a_stall_is_told_and_names_nobody() {
        let job = with_steps(job(1, 8, 20, |_, _| 1.0), |step| if step == 7 { 65.0 } else { 5.0 });
        let verdict = verdict(&job);
        assert_eq!((verdict.anomalies, verdict.cause), (vec![], Cause::None));
        assert_eq!(
            verdict.findings[0].says,
            "iteration 7 took 60.0 s longer than usual on all ranks"
        );
    }
}

//! From what was measured to findings that people read.

use super::loader::SlowLoader;
use super::passing::Spell;
use super::reference::Reference;
use super::replica::HeavyReplica;
use super::structure::{HeavyStage, UnevenData};
use super::suspects::Suspect;
use super::units::Units;
use super::votes::Votes;
use crate::contract::timers::BATCH_GENERATOR;
use crate::job::{Job, LongStep};
use crate::verdict::{Cause, Finding, FindingKind, TimerEvidence, words};

/// What findings of one job share.
pub(super) struct Writer<'a> {
    pub job: &'a Job,
    pub units: &'a Units,
}

impl Writer<'_> {
    fn finding(&self, kind: FindingKind, cause: Cause) -> Finding {
        Finding::new(kind, cause, self.job.iteration_count())
    }

    /// Fills in who it is: ranks (positions), nodes, stages.
    fn accuse(&self, finding: &mut Finding, ranks: &[usize]) {
        finding.ranks = ranks.iter().map(|&rank| self.job.ranks[rank]).collect();
        finding.ranks.sort_unstable();
        finding.nodes = ranks.iter().map(|&rank| self.job.nodes[rank].clone()).collect();
        finding.nodes.sort_unstable();
        finding.nodes.dedup();
        if self.units.places.stages.len() > 1 {
            finding.stages = ranks
                .iter()
                .map(|&rank| self.units.stages[self.units.unit_of[rank]])
                .collect();
            finding.stages.sort_unstable();
            finding.stages.dedup();
        }
    }

    fn first(&self, step: usize) -> i64 {
        self.job.iterations[step]
    }

    fn last(&self, step: usize) -> i64 {
        self.job.last_iteration_of(step)
    }

    /// Where and how often it shows, by the steps in which it does.
    fn shows_in(&self, finding: &mut Finding, steps: impl Iterator<Item = usize> + Clone) {
        finding.slow_iterations = Some(self.job.iterations_in(steps.clone()));
        finding.first_iteration = steps.clone().next().map(|step| self.first(step));
        finding.last_iteration = steps.last().map(|step| self.last(step));
    }

    /// A suspect after the vote: named, or a mere suspect when the algorithms disagree.
    pub fn suspect(&self, suspect: &Suspect, votes: &Votes, reference: &mut Reference<'_>) -> Finding {
        let confirmed: Vec<usize> = suspect
            .ranks
            .iter()
            .copied()
            .filter(|&rank| votes.confirm(rank))
            .collect();
        let named = !confirmed.is_empty();
        let ranks = if named { &confirmed } else { &suspect.ranks };
        let kind = match (named, suspect.one_of) {
            (false, _) => FindingKind::Suspect,
            (true, false) => FindingKind::SlowRank,
            (true, true) => FindingKind::OneOfGroup,
        };
        let mut finding = self.finding(kind, Cause::Compute);
        finding.named = named;
        self.accuse(&mut finding, ranks);
        let excess = suspect.score.excess.exp_m1();
        finding.factor = Some(1.0 + excess);
        finding.cost = Some(excess * suspect.steps.share());
        self.when(&mut finding, suspect);
        finding.voters = votes.voters as usize;
        finding.voted_by = votes
            .algorithms
            .iter()
            .filter(|algorithm| ranks.iter().all(|&rank| algorithm.ranks[rank].slow))
            .map(|algorithm| algorithm.name.to_owned())
            .collect();
        let fewest = ranks.iter().map(|&rank| votes.votes[rank]).min().unwrap_or(0);
        finding.confidence = Some(confidence(suspect, fewest, votes.voters));
        finding.timers = reference.compare(suspect);
        finding.says = self.says(&finding, suspect);
        finding
    }

    fn when(&self, finding: &mut Finding, suspect: &Suspect) {
        self.shows_in(finding, suspect.steps.slow_places());
        finding.until = finding.last_iteration.filter(|_| !suspect.steps.recent);
        finding.onset = (suspect.score.from > 0).then(|| self.first(suspect.score.from));
    }

    fn says(&self, finding: &Finding, suspect: &Suspect) -> String {
        let who = format!("{} on {}", words::ranks(&finding.ranks), words::nodes(&finding.nodes));
        let plural = finding.ranks.len() != 1 && finding.kind != FindingKind::OneOfGroup;
        let percent = format!("{:.1} %", 100.0 * suspect.score.excess.exp_m1());
        let verb = if plural { "compute" } else { "computes" };
        let own = if plural { "their" } else { "its" };
        let against = if self.alone(suspect) {
            format!("{percent} slower than in {own} better part of the window")
        } else {
            format!("{percent} slower than {own} peers")
        };
        let since = match (finding.onset, finding.until) {
            (Some(onset), _) => format!(", since iteration {onset}"),
            (None, Some(until)) => format!(", until iteration {until}"),
            (None, None) => String::new(),
        };
        let subject = match finding.kind {
            FindingKind::OneOfGroup => format!("at least one of {who}"),
            _ => who,
        };
        let steps = format!(
            "in {} of {}",
            finding.slow_iterations.unwrap_or(0),
            words::number(finding.iterations, "iteration")
        );
        match finding.kind {
            FindingKind::Suspect => {
                format!(
                    "{subject} {verb} {against}{since}, {steps}, but most algorithms do not tell {} apart",
                    if plural { "them" } else { "it" }
                )
            }
            _ => format!("{subject} {verb} {against}{since}, {steps}"),
        }
    }

    fn alone(&self, suspect: &Suspect) -> bool {
        let stage = self.units.places.stage_of[suspect.unit];
        self.units.places.stages[stage].len() < 2
    }

    /// One replica with more work in every stage.
    pub fn heavy_replica(&self, replica: &HeavyReplica) -> Finding {
        let mut finding = self.finding(FindingKind::Imbalance, Cause::DataImbalance);
        let ranks: Vec<usize> = replica
            .units
            .iter()
            .flat_map(|&unit| self.units.members[unit].iter().copied())
            .collect();
        self.accuse(&mut finding, &ranks);
        let excess = replica.excess.exp_m1();
        finding.factor = Some(1.0 + excess);
        finding.cost = Some(excess);
        finding.says = format!(
            "pipeline {} ({}) takes {:.1} % longer than the others in every stage: it gets more data, lastingly",
            replica.pipeline,
            words::ranks(&finding.ranks),
            100.0 * excess
        );
        finding
    }

    /// A slow loader.
    pub fn slow_loader(&self, loader: &SlowLoader) -> Finding {
        let mut finding = self.finding(FindingKind::SlowRank, Cause::DataLoading);
        finding.named = true;
        self.accuse(&mut finding, &[loader.rank]);
        finding.cost = Some(loader.cost);
        let steps = (0..loader.slow.len()).filter(|&step| loader.slow[step]);
        self.shows_in(&mut finding, steps);
        finding.timers = self.loading(loader).into_iter().collect();
        finding.factor = finding.timers.first().map(|timer| timer.factor);
        finding.says = format!(
            "{} on {} loads data for {:.1} % of the computing longer than its peers, in {} of {}",
            words::ranks(&finding.ranks),
            words::nodes(&finding.nodes),
            100.0 * loader.excess,
            finding.slow_iterations.unwrap_or(0),
            words::number(finding.iterations, "iteration")
        );
        finding
    }

    fn loading(&self, loader: &SlowLoader) -> Option<TimerEvidence> {
        use crate::stats::{low_median, mean};
        let timer = self.job.timer(BATCH_GENERATOR)?;
        let seconds = |rank: usize| {
            let ran = timer.seconds.row(rank);
            mean(ran.iter().copied().filter(|&seconds| seconds > 0.0))
        };
        let stage = self.units.places.stage_of[loader.unit];
        let units = self.units.places.stages[stage]
            .iter()
            .filter(|&&unit| unit != loader.unit);
        let longest = |&unit: &usize| {
            let members = self.units.members[unit].iter();
            members.map(|&rank| seconds(rank)).fold(f64::NAN, f64::max)
        };
        let (mean_seconds, reference_seconds) = (seconds(loader.rank), low_median(units.map(longest)));
        (mean_seconds.is_finite() && reference_seconds.is_finite()).then(|| TimerEvidence {
            timer: BATCH_GENERATOR.to_owned(),
            mean_seconds,
            reference_seconds,
            factor: mean_seconds / reference_seconds,
            slow_by: Vec::new(),
        })
    }

    /// Loaders that are slow on all ranks.
    pub fn slow_loaders(&self, share: f64) -> Finding {
        let mut finding = self.finding(FindingKind::JobWide, Cause::DataLoading);
        finding.cost = Some(share);
        finding.says = format!(
            "loading data takes {:.1} % of the computing on all ranks alike",
            100.0 * share
        );
        finding
    }

    /// A stage with more work.
    pub fn heavy_stage(&self, stage: &HeavyStage) -> Finding {
        let mut finding = self.finding(FindingKind::Imbalance, Cause::StageImbalance);
        finding.stages = vec![stage.stage];
        finding.factor = Some(1.0 + stage.excess);
        finding.cost = Some(stage.cost);
        finding.says = format!(
            "stage {} has {:.1} % more work than the other stages: nobody's fault, its layers could be spread anew",
            stage.stage,
            100.0 * stage.excess
        );
        finding
    }

    /// Data that varies.
    pub fn uneven_data(&self, data: &UnevenData) -> Finding {
        let mut finding = self.finding(FindingKind::Imbalance, Cause::DataImbalance);
        finding.cost = Some(data.cost);
        let among = if self.units.places.stages.len() > 1 {
            "pipelines"
        } else {
            "ranks"
        };
        finding.says = format!(
            "the work of the {among} varies by {:.1} % from step to step (sequence lengths or experts), so that each step waits for another one",
            100.0 * data.deviation.exp_m1()
        );
        finding
    }

    /// A spell of a unit.
    pub fn spell(&self, spell: &Spell) -> Finding {
        let mut finding = self.finding(FindingKind::Transient, Cause::None);
        self.accuse(&mut finding, &self.units.members[spell.unit]);
        finding.factor = Some(spell.excess.exp());
        self.shows_in(&mut finding, spell.steps.iter().copied());
        let was = if finding.ranks.len() == 1 { "was" } else { "were" };
        finding.says = format!(
            "{} on {} {was} slow for {} and recovered",
            words::ranks(&finding.ranks),
            words::nodes(&finding.nodes),
            words::number(finding.slow_iterations.unwrap_or(0), "iteration"),
        );
        finding
    }

    /// A stall.
    pub fn long_step(&self, step: &LongStep) -> Finding {
        let mut finding = self.finding(FindingKind::Stall, Cause::None);
        let iteration = step.iteration;
        finding.factor = Some(step.seconds / step.usual_seconds);
        finding.slow_iterations = Some(1);
        (finding.first_iteration, finding.last_iteration) = (Some(iteration), Some(iteration));
        finding.says = format!(
            "iteration {iteration} took {:.1} s longer than usual on all ranks",
            step.seconds - step.usual_seconds
        );
        finding
    }
}

/// How sure a suspect is: by how far it passes the threshold and how many algorithms agree, half for one of a group.
fn confidence(suspect: &Suspect, votes: u32, voters: u32) -> f64 {
    let agreement = if voters == 0 {
        0.5
    } else {
        f64::from(votes) / f64::from(voters)
    };
    let sure = (1.0 - 0.5f64.powf(suspect.score.margin())) * (0.5 + 0.5 * agreement);
    let sure = if suspect.one_of { 0.5 * sure } else { sure };
    (1000.0 * sure).round() / 1000.0
}

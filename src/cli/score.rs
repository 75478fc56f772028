//! `score`: verdicts on labelled jobs, held against the truth.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::exit::{ArgumentError, Exit};
use super::progress::Progress;
use super::stdout::print;
use super::values::algorithms;
use crate::algos::Algorithm;
use crate::evaluation::score::{
    LabelledJobs, Origin, Report, ScoreError, labelled_jobs, run as score, sensitivity, sensitivity_text, suite_jobs,
    text,
};
use crate::evaluation::simulate::write_job;
use crate::evaluation::suite::{Group, KINDS, Kind, NoiseLevel, kind_of};
use crate::report::WriteError;
use crate::rules::peer::Ablation;
use crate::rules::{Rules, RulesSettings};

/// Kinds that `--healthy` draws in turn.
const HEALTHY: [&str; 2] = ["healthy", "healthy-noisy"];

/// More threads than any machine has processors would only be started to wait.
const MOST_THREADS: usize = 4096;

/// Arguments of `score`, as typed.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// Folder with labels.json and {job}.parquet beside it, as `simulate` writes them
    #[arg(value_name = "FOLDER", required_unless_present = "suite")]
    folder: Option<PathBuf>,
    /// Simulate the jobs instead, without files
    #[arg(long, conflicts_with = "folder")]
    suite: bool,
    /// Kinds of jobs, by commas; of the suite also groups: ranks, clusters, network (it is at fault), sound-network;
    /// list shows all of them [default: all; of the suite the groups ranks and clusters]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Seeds of the suite, both ends included: A-B or A
    #[arg(long, value_name = "RANGE", default_value = "0-4", conflicts_with = "folder")]
    seeds: String,
    /// Noise of the suite
    #[arg(long, value_enum, default_value_t = Noise::Soft, conflicts_with = "folder")]
    noise: Noise,
    /// Score this many healthy jobs only, from the first of the seeds on
    #[arg(long, value_name = "N", conflicts_with_all = ["folder", "kinds"])]
    healthy: Option<usize>,
    /// Let the levels of the suite's ranks wander by 1-2 % over 10-30 steps (noise that is like that of the step before)
    #[arg(long, conflicts_with = "folder")]
    wander: bool,
    /// Rules of the verdicts
    #[arg(long, value_enum, default_value_t = RulesName::Peer)]
    rules: RulesName,
    /// Algorithms that vote: all, or names separated by commas
    #[arg(long, value_name = "NAMES", default_value = "all", value_delimiter = ',')]
    algorithm: Vec<String>,
    /// Steps of the peer rules to leave out, by commas, to see what they buy
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = parts_of_the_rules())]
    without: Vec<Ablation>,
    /// Move every number of the rules to half and to twice its value, one at a time, and tell what changes; the jobs are held in
    /// memory meanwhile
    #[arg(long, conflicts_with_all = ["show", "fail_under"])]
    sensitivity: bool,
    /// Write the suite's jobs to a folder, as `simulate` does, instead of judging them
    #[arg(long, value_name = "DIR", requires = "suite", conflicts_with_all = ["sensitivity", "show", "fail_under"])]
    write: Option<PathBuf>,
    /// List every job with a wrong answer, with the true and the given ranks and causes
    #[arg(long)]
    show: bool,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 when a smaller share of the jobs is exact (0 to 1)
    #[arg(long, value_name = "SHARE")]
    fail_under: Option<f64>,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The parts that `--without` leaves out, by name.
fn parts_of_the_rules() -> impl TypedValueParser<Value = Ablation> {
    PossibleValuesParser::new(Ablation::ALL.map(Ablation::name)).try_map(|name| {
        let known = Ablation::ALL.into_iter().find(|part| part.name() == name);
        known.ok_or_else(|| format!("`{name}` is no part of the peer rules"))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Noise {
    /// As in well-kept jobs
    Soft,
    /// As hard as the simulator makes it
    Hard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RulesName {
    /// The classic rules
    Classic,
    /// The peer rules
    Peer,
    /// Both, side by side
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table by kind and the totals
    Text,
    /// One line of JSON
    Json,
}

/// Runs `score`.
///
/// # Errors
/// Bad arguments, a folder or labels that can't be read, nothing to score, standard output that can't be written.
pub fn run(args: &ScoreArgs) -> anyhow::Result<Exit> {
    if args.kinds.iter().any(|kind| kind == "list") {
        let lines = KINDS
            .iter()
            .map(|kind| format!("{:26}{:15}{}\n", kind.name, kind.group.name(), kind.about));
        print(&lines.collect::<String>())?;
        return Ok(Exit::Success);
    }
    let rules = args.rule_sets();
    let algorithms = algorithms(&args.algorithm)?;
    if let Some(share) = args.fail_under
        && !(0.0..=1.0).contains(&share)
    {
        return Err(ArgumentError::new("--fail-under", format!("{share} is no share between 0 and 1")).into());
    }
    match args.threads {
        None => {}
        Some(threads) if !(1..=MOST_THREADS).contains(&threads) => {
            let reason = format!("{threads} is not between 1 and {MOST_THREADS}");
            return Err(ArgumentError::new("--threads", reason).into());
        }
        Some(threads) => rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .with_context(|| format!("failed to start {threads} threads"))?,
    }
    let begin = Instant::now();
    let jobs = args.jobs()?;
    if let Some(folder) = &args.write {
        return write_jobs(&jobs, folder);
    }
    if args.sensitivity {
        return args.print_sensitivity(&jobs, &algorithms);
    }
    let progress = Progress::counting("scoring", "jobs");
    let settings: Vec<RulesSettings> = rules.iter().map(|&rules| args.settings(rules)).collect();
    let outcomes = score(&jobs.cases, &settings, &algorithms, &|done| progress.rows(done as u64));
    drop(progress);
    let mut report = Report::new(&outcomes, &rules, begin.elapsed().as_secs_f64());
    report.labels_without_file = jobs.labels_without_file;
    report.files_without_label = jobs.files_without_label;
    match args.format {
        Format::Text => print(&text(&report, args.show))?,
        Format::Json => print(&json_line(&report, "the score")?)?,
    }
    let enough = |share: f64| report.rules.iter().all(|score| score.total.exact_share() >= share);
    Ok(if args.fail_under.is_none_or(enough) {
        Exit::Success
    } else {
        Exit::BelowTarget
    })
}

/// Writes simulated jobs with their labels to a folder; those of the same names are replaced.
fn write_jobs(jobs: &LabelledJobs, folder: &Path) -> anyhow::Result<Exit> {
    let progress = Progress::counting("writing", "jobs");
    for (done, case) in jobs.cases.iter().enumerate() {
        if let Origin::Simulated(scenario) = &case.origin {
            write_job(scenario, folder, true)?;
        }
        progress.rows(done as u64 + 1);
    }
    drop(progress);
    print(&format!("{} jobs in {}\n", jobs.cases.len(), folder.display()))?;
    Ok(Exit::Success)
}

/// One line of JSON.
fn json_line(value: &impl serde::Serialize, what: &'static str) -> Result<String, WriteError> {
    let line = serde_json::to_string(value).map_err(|reason| WriteError::Format {
        what,
        reason: reason.to_string(),
    })?;
    Ok(line + "\n")
}

impl ScoreArgs {
    fn print_sensitivity(&self, jobs: &LabelledJobs, algorithms: &[&'static dyn Algorithm]) -> anyhow::Result<Exit> {
        let [rules] = self.rule_sets()[..] else {
            return Err(ArgumentError::new("--sensitivity", "one set of rules at a time".to_owned()).into());
        };
        let progress = Progress::counting("moving", "numbers");
        let told = sensitivity(&jobs.cases, &|| self.settings(rules), algorithms, &|done| {
            progress.rows(done as u64)
        });
        drop(progress);
        print(&match self.format {
            Format::Text => sensitivity_text(&told),
            Format::Json => json_line(&told, "the sensitivity")?,
        })?;
        Ok(Exit::Success)
    }

    fn settings(&self, rules: Rules) -> RulesSettings {
        match RulesSettings::of(rules) {
            RulesSettings::Peer(peer) => RulesSettings::Peer(peer.without(self.without.iter().copied())),
            classic @ RulesSettings::Classic(_) => classic,
        }
    }

    fn rule_sets(&self) -> Vec<Rules> {
        match self.rules {
            RulesName::Classic => vec![Rules::Classic],
            RulesName::Peer => vec![Rules::Peer],
            RulesName::Both => vec![Rules::Classic, Rules::Peer],
        }
    }

    fn jobs(&self) -> anyhow::Result<LabelledJobs> {
        let Some(folder) = &self.folder else {
            return Ok(self.simulated()?);
        };
        let mut jobs = labelled_jobs(folder)?;
        if !self.kinds.is_empty() {
            let asked = |kind: Option<&str>| kind.is_some_and(|kind| self.kinds.iter().any(|asked| asked == kind));
            jobs.cases.retain(|case| asked(case.kind()));
        }
        if jobs.cases.is_empty() {
            let mut why = format!("no labelled job with a file in {}", folder.display());
            if !self.kinds.is_empty() {
                why += &format!(" is of kind {}", self.kinds.join(", "));
            }
            return Err(ScoreError::Nothing(why).into());
        }
        Ok(jobs)
    }

    fn simulated(&self) -> Result<LabelledJobs, ArgumentError> {
        let (first, last) = seeds(&self.seeds)?;
        let level = match self.noise {
            Noise::Soft => NoiseLevel::Soft,
            Noise::Hard => NoiseLevel::Hard,
        };
        let cases = match self.healthy {
            Some(count) => {
                let kinds: Vec<&Kind> = HEALTHY.iter().filter_map(|name| kind_of(name)).collect();
                let a_kind = |place: usize| {
                    let share = count / kinds.len() + usize::from(place < count % kinds.len());
                    suite_jobs(&kinds[place..=place], (first..u64::MAX).take(share), level, self.wander)
                };
                (0..kinds.len()).flat_map(a_kind).collect()
            }
            None => suite_jobs(&self.suite_kinds()?, first..=last, level, self.wander),
        };
        Ok(LabelledJobs {
            cases,
            ..LabelledJobs::default()
        })
    }

    fn suite_kinds(&self) -> Result<Vec<&'static Kind>, ArgumentError> {
        if self.kinds.is_empty() {
            let usual = [Group::Ranks, Group::Clusters];
            return Ok(KINDS.iter().filter(|kind| usual.contains(&kind.group)).collect());
        }
        let known = |name: &str| kind_of(name).is_some() || Group::ALL.iter().any(|group| group.name() == name);
        let unknown = self.kinds.iter().find(|name| !known(name));
        if let Some(unknown) = unknown {
            let groups = Group::ALL.iter().map(|group| group.name());
            let names: Vec<&str> = groups.chain(KINDS.iter().map(|kind| kind.name)).collect();
            let reason = format!("`{unknown}` is unknown; there are {}", names.join(", "));
            return Err(ArgumentError::new("--kinds", reason));
        }
        let asked = |kind: &&Kind| {
            self.kinds
                .iter()
                .any(|name| name == kind.name || name == kind.group.name())
        };
        Ok(KINDS.iter().filter(asked).collect())
    }
}

fn seeds(text: &str) -> Result<(u64, u64), ArgumentError> {
    let malformed = || ArgumentError::new("--seeds", format!("`{text}` is no range of seeds; write A-B or A"));
    let number = |part: &str| part.trim().parse::<u64>().map_err(|_| malformed());
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    if first > last {
        let reason = format!("the range {first}-{last} ends before it begins");
        return Err(ArgumentError::new("--seeds", reason));
    }
    Ok((first, last))
}

//! A report for people: a table by kind, the totals, and on request every miss.

use super::lines::push_line;
use super::report::{Miss, Report, RuleScore, Tally};
use super::text_network::{network_table, network_totals};

/// Columns of one set of rules.
const COLUMNS: [&str; 5] = ["exact", "tp", "fn", "fp", "cause"];

/// Writes a report; with `show` every miss, failures in any case.
///
/// Several sets of rules stand side by side.
#[must_use]
pub fn text(report: &Report, show: bool) -> String {
    let mut out = String::new();
    for score in &report.rules {
        for miss in score.misses.iter().filter(|miss| show || miss.failure.is_some()) {
            let name = if report.rules.len() > 1 { score.rules.name() } else { "" };
            push_line(&mut out, &miss_line(miss, name));
        }
    }
    table(&mut out, &report.rules);
    for score in &report.rules {
        push_line(&mut out, &totals(score));
    }
    network_table(&mut out, &report.rules);
    for score in &report.rules {
        push_line(&mut out, &network_totals(score));
    }
    for (what, names) in [
        ("labels without a file", &report.labels_without_file),
        ("files without a label", &report.files_without_label),
    ] {
        if !names.is_empty() {
            push_line(&mut out, &format!("{what}: {}", names.join(", ")));
        }
    }
    push_line(&mut out, &format!("seconds {:.0}", report.seconds));
    out
}

fn table(out: &mut String, scores: &[RuleScore]) {
    let Some(first) = scores.first() else {
        return;
    };
    let width = first.kinds.iter().map(|tally| tally.kind.len()).fold(18, usize::max);
    if scores.len() > 1 {
        let names = scores.iter().map(|score| format!(" | {:<27}", score.rules.name()));
        push_line(out, &format!("{:width$} {:>4}{}", "", "", names.collect::<String>()));
    }
    let bar = if scores.len() > 1 { " |" } else { "" };
    let cells = |values: [String; 5]| {
        let [exact, tp, missed, fp, cause] = values;
        format!("{bar} {exact:>5} {tp:>5} {missed:>4} {fp:>5} {cause:>5}")
    };
    let head = cells(COLUMNS.map(str::to_owned));
    push_line(
        out,
        &format!("{:width$} {:>4}{}", "kind", "jobs", head.repeat(scores.len())),
    );
    let numbers = |tally: &Tally| {
        cells([tally.exact, tally.tp, tally.missed, tally.fp, tally.cause].map(|number| number.to_string()))
    };
    for (place, tally) in first.kinds.iter().enumerate() {
        let all: String = scores
            .iter()
            .filter_map(|score| score.kinds.get(place))
            .map(numbers)
            .collect();
        push_line(out, &format!("{:width$} {:>4}{all}", tally.kind, tally.jobs));
    }
    let all: String = scores.iter().map(|score| numbers(&score.total)).collect();
    push_line(out, &format!("{:width$} {:>4}{all}", "total", first.total.jobs));
}

fn totals(score: &RuleScore) -> String {
    let total = &score.total;
    let mut line = format!(
        "{}: precision {:.3} recall {:.3} F1 {:.3} exact {}/{} cause {}/{}",
        score.rules.name(),
        score.precision,
        score.recall,
        score.f1,
        total.exact,
        total.jobs,
        total.cause,
        total.jobs,
    );
    if total.failed > 0 {
        line += &format!(" failed {}", total.failed);
    }
    if score.healthy.jobs > 0 {
        let healthy = score.healthy;
        line += &format!(
            "; of {} jobs in which nobody is slow, {} name somebody",
            healthy.jobs, healthy.named
        );
    }
    line
}

fn miss_line(miss: &Miss, rules: &str) -> String {
    let mut line = format!("  {} {rules}", miss.job).trim_end().to_owned() + ": ";
    if let Some(truth) = &miss.truth {
        line += &format!("true {:?} {}", truth.slow_ranks, truth.cause);
        if let Some(strength) = truth.strength {
            line += &format!(" x{strength:.3}");
        }
        if truth.same_as.len() > truth.slow_ranks.len() {
            line += &format!(" (same as {:?})", truth.same_as);
        }
        line += ", ";
    }
    match (&miss.answer, &miss.failure) {
        (Some(answer), _) => line += &format!("got {:?} {}", answer.ranks, answer.cause.name()),
        (None, why) => line += &format!("failed: {}", why.as_deref().unwrap_or("no answer")),
    }
    if let (Some(truth), Some(answer)) = (&miss.truth, &miss.answer) {
        if truth.has_network_fault() {
            line += &format!(" nodes {:?}, true {:?}", answer.nodes, truth.places());
        }
        if truth.lost_ranks.iter().any(|rank| answer.ranks.contains(rank)) {
            line += &format!(" ({:?} was slow in the lost run only)", truth.lost_ranks);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::outcomes;
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn one_set_of_rules() {
        let report = Report::new(&outcomes(), &[Rules::Classic], 1.4);
        let expected = "  slow-2: true [1, 2] compute, failed: no rows
kind               jobs exact    tp   fn    fp cause
gpu-slow              2     1     1    2     0     1
healthy               1     0     0    0     2     0
total                 3     1     1    2     2     1
classic: precision 0.333 recall 0.333 F1 0.333 exact 1/3 cause 1/3 failed 1; of 1 jobs in which nobody is slow, 1 name \
somebody
classic: of 3 jobs with a sound network, 0 blame it
seconds 1
";
        assert_eq!(text(&report, false), expected);
        assert!(text(&report, true).starts_with("  well-1: true [] none, got [7, 8] compute\n"));
    }

    #[test]
    fn two_sets_of_rules_side_by_side() {
        let report = Report::new(&outcomes(), &[Rules::Classic, Rules::Peer], 1.4);
        let text = text(&report, true);
        assert!(
            text.contains("  slow-1 peer: true [3] compute, got [] none\n"),
            "{text}"
        );
        let head = "kind               jobs | exact    tp   fn    fp cause | exact    tp   fn    fp cause\n";
        assert!(text.contains(head), "{text}");
        assert!(
            text.contains("healthy               1 |     0     0    0     2     0 |     1     0    0     0     1\n"),
            "{text}"
        );
    }
}

//! The part of the text that tells how faults of the network were judged.

use super::lines::push_line;
use super::network::NetworkTally;
use super::report::RuleScore;

/// Columns of one set of rules, in jobs.
const COLUMNS: [&str; 5] = ["right", "within", "only", "spared", "cause"];

/// A row a kind whose network is at fault, several sets of rules side by side; nothing where there is none.
pub fn network_table(out: &mut String, scores: &[RuleScore]) {
    let Some(first) = scores.first().filter(|score| !score.network.is_empty()) else {
        return;
    };
    let width = first.network.iter().map(|tally| tally.kind.len()).fold(18, usize::max);
    let several = scores.len() > 1;
    if several {
        let names = scores.iter().map(|score| format!(" | {:<34}", score.rules.name()));
        push_line(out, &format!("{:width$} {:>4}{}", "", "", names.collect::<String>()));
    }
    let cells = |values: [String; 5]| {
        let bar = if several { " |" } else { "" };
        values
            .iter()
            .fold(bar.to_owned(), |line, value| line + &format!(" {value:>6}"))
    };
    let head = cells(COLUMNS.map(str::to_owned)).repeat(scores.len());
    push_line(out, &format!("{:width$} {:>4}{head}", "network at fault", "jobs"));
    let numbers = |tally: &NetworkTally| {
        cells([tally.right, tally.within, tally.only, tally.spared, tally.cause].map(|number| number.to_string()))
    };
    for (place, tally) in first.network.iter().enumerate() {
        let all: String = (scores.iter().filter_map(|score| score.network.get(place)))
            .map(numbers)
            .collect();
        push_line(out, &format!("{:width$} {:>4}{all}", tally.kind, tally.jobs));
    }
    let all: String = scores.iter().map(|score| numbers(&score.network_total)).collect();
    push_line(out, &format!("{:width$} {:>4}{all}", "total", first.network_total.jobs));
}

/// One line on a set of rules: shares of the jobs whose network is at fault, and how often a sound one is blamed.
pub fn network_totals(score: &RuleScore) -> String {
    let total = &score.network_total;
    let mut line = format!("{}:", score.rules.name());
    if total.jobs > 0 {
        let share = |jobs: usize| 100.0 * jobs as f64 / total.jobs as f64;
        line += &format!(
            " of {} jobs whose network is at fault, right node {:.1} %, none beyond {:.1} %, cause {:.1} %;",
            total.jobs,
            share(total.right),
            share(total.within),
            share(total.cause),
        );
    }
    line + &format!(
        " of {} jobs with a sound network, {} blame it",
        score.sound.jobs, score.sound.blamed
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::Report;
    use super::super::report::tests::outcomes;
    use super::*;
    use crate::rules::Rules;

    #[test]
    fn no_fault_of_the_network_no_table() {
        let report = Report::new(&outcomes(), &[Rules::Peer], 1.0);
        let mut out = String::new();
        network_table(&mut out, &report.rules);
        assert_eq!(out, "");
    }

    #[test]
    fn kinds_and_shares() {
        let mut report = Report::new(&outcomes(), &[Rules::Classic, Rules::Peer], 1.0);
        for (score, right) in report.rules.iter_mut().zip([1, 2]) {
            score.network_total = NetworkTally {
                kind: "total".to_owned(),
                jobs: 2,
                right,
                within: 2,
                only: 1,
                spared: 2,
                cause: 1,
            };
            score.network = vec![NetworkTally {
                kind: "nic-send".to_owned(),
                ..score.network_total.clone()
            }];
        }
        let mut out = String::new();
        network_table(&mut out, &report.rules);
        let expected = "                        | classic                            | peer
network at fault   jobs |  right within   only spared  cause |  right within   only spared  cause
nic-send              2 |      1      2      1      2      1 |      2      2      1      2      1
total                 2 |      1      2      1      2      1 |      2      2      1      2      1
";
        assert_eq!(out, expected);
        let line = "classic: of 2 jobs whose network is at fault, right node 50.0 %, none beyond 100.0 %, cause 50.0 %; of 3 \
jobs with a sound network, 0 blame it";
        assert_eq!(network_totals(&report.rules[0]), line);
    }
}

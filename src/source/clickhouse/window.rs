//! The rules of a row's fate as SQL for a table's layout.

use super::layout::Layout;
use super::pull::Wanted;
use crate::source::fate::{Condition, Fate, RULES, Rule, Scope, WantedMetric};

/// What a rule asks of a row of a metric; `None` where nothing is asked, as for an open end.
fn condition(rule: &Rule, layout: &Layout, wanted: &Wanted<'_>, lists: bool) -> Option<String> {
    match rule.sql {
        Condition::Sql(sql) => Some(sql.to_owned()),
        Condition::NamedWithValues => {
            Some("(isNull(subname) OR (subname IN {lists:Array(String)} AND notEmpty(metric_values)))".to_owned())
        }
        Condition::UntilEnd => until_end(layout, wanted),
        Condition::FromStart => from_start(layout, wanted),
        Condition::InIterations if lists && wanted.sampled.is_some() => {
            Some(format!("{} AND iteration IN {{sampled:Array(Int64)}}", in_iterations()))
        }
        Condition::InIterations => Some(in_iterations().to_owned()),
    }
}

/// The time column is not beyond the end.
pub(super) fn until_end(layout: &Layout, wanted: &Wanted<'_>) -> Option<String> {
    let bound = layout.between(None, wanted.end);
    bound.strip_prefix(" AND ").map(str::to_owned)
}

/// The time column is not before the start.
pub(super) fn from_start(layout: &Layout, wanted: &Wanted<'_>) -> Option<String> {
    let bound = layout.between(wanted.start, None);
    bound.strip_prefix(" AND ").map(str::to_owned)
}

/// The iteration is one of those that are asked for.
pub(super) fn in_iterations() -> &'static str {
    "iteration >= {first:Int64} AND iteration <= {last:Int64}"
}

/// The condition of a metric's rows that pass every rule but those of their values.
pub(super) fn in_window(layout: &Layout, wanted: &Wanted<'_>, metric: &WantedMetric) -> String {
    let asked = RULES
        .iter()
        .filter(|rule| rule.of.holds(metric) && rule.of != Scope::Durations)
        .filter_map(|rule| condition(rule, layout, wanted, metric.lists.is_some()));
    asked.collect::<Vec<_>>().join(" AND ")
}

/// The code of a row's fate, but for what its value decides; `metric` is its place in the wanted ones, from 1 on, 0 for
/// none of them.
pub(super) fn fate_code(layout: &Layout, wanted: &Wanted<'_>) -> String {
    let taken = Fate::Taken.code();
    let mut branches = vec![format!("metric = 0, {taken}")];
    for rule in RULES.iter().filter(|rule| rule.of != Scope::Durations) {
        // Only metrics with lists are sampled, so that the rule is not the same for all.
        for lists in [false, true] {
            let metrics = wanted.metrics.iter().enumerate();
            let places: Vec<String> = metrics
                .filter(|(_, metric)| rule.of.holds(metric) && metric.lists.is_some() == lists)
                .map(|(place, _)| (place + 1).to_string())
                .collect();
            let passes = condition(rule, layout, wanted, lists).filter(|_| !places.is_empty());
            if let Some(passes) = passes {
                let (places, code) = (places.join(", "), rule.fate.code());
                branches.push(format!("metric IN ({places}) AND NOT ifNull({passes}, 0), {code}"));
            }
        }
    }
    format!("toUInt8(multiIf({}, {taken}))", branches.join(", "))
}

/// Whether a value is a duration.
pub(super) fn is_usable() -> String {
    passes(RULES.iter().filter(|rule| rule.of == Scope::Durations))
}

/// Whether a value is left out for a reason, and for none before it.
pub(super) fn value_is(fate: Fate) -> String {
    let of_values = || RULES.iter().filter(|rule| rule.of == Scope::Durations);
    let before = passes(of_values().take_while(|rule| rule.fate != fate));
    let this = passes(of_values().filter(|rule| rule.fate == fate));
    format!("({before} AND NOT {this})")
}

fn passes<'a>(rules: impl Iterator<Item = &'a Rule>) -> String {
    let conditions = rules.filter_map(|rule| match rule.sql {
        Condition::Sql(sql) => Some(format!("ifNull({sql}, 0)")),
        _ => None,
    });
    let all: Vec<String> = std::iter::once("1".to_owned()).chain(conditions).collect();
    format!("({})", all.join(" AND "))
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::layout;
    use super::*;
    use crate::source::fate::{WANTED, place};

    fn wanted(sampled: Option<&[i64]>) -> Wanted<'_> {
        Wanted {
            job: "j",
            metrics: &WANTED,
            start: Some(1_000_000),
            end: None,
            iterations: (Some(3), None),
            sampled,
        }
    }

    #[test]
    fn a_window_asks_what_the_rules_ask() {
        let (layout, wanted) = (layout(), wanted(None));
        let of = |metric| in_window(&layout, &wanted, &WANTED[metric]);
        let readable = "rank >= 0 AND rank <= 4294967295 AND isNotNull(subname) AND isNotNull(timestamp)";
        assert_eq!(of(place::GROUPS), readable);
        assert_eq!(
            of(place::TIMERS),
            format!(
                "{readable} AND iteration >= 0 AND timestamp >= toDateTime(1) AND \
                 iteration >= {{first:Int64}} AND iteration <= {{last:Int64}}"
            )
        );
        assert!(of(place::TRACE).starts_with("(isNull(subname) OR"));
    }

    #[test]
    fn every_rule_has_its_branch_in_order() {
        let sql = fate_code(&layout(), &wanted(Some(&[4])));
        let places: Vec<usize> = [
            "metric = 0, 8",
            "metric IN (3) AND NOT ifNull((isNull(subname)",
            "isNotNull(timestamp), 0), 1",
        ]
        .iter()
        .chain(&[
            "metric IN (1) AND NOT ifNull(iteration >= 0, 0), 1",
            "toDateTime(1), 0), 3",
            "{last:Int64}, 0), 4",
        ])
        .chain(&["iteration IN {sampled:Array(Int64)}, 0), 4, 8))"])
        .map(|part| sql.find(part).unwrap_or_else(|| panic!("no {part} in {sql}")))
        .collect();
        assert!(places.is_sorted(), "{sql}");
        assert!(!sql.contains("isFinite"));
    }

    #[test]
    fn values_are_told_apart() {
        let usable = "(1 AND ifNull(isNotNull(row_value), 0) AND ifNull(isFinite(row_value) AND row_value <= 1e9, 0) AND ifNull(row_value >= 0, 0))";
        assert_eq!(is_usable(), usable);
        assert_eq!(
            value_is(Fate::MissingValue),
            "((1) AND NOT (1 AND ifNull(isNotNull(row_value), 0)))"
        );
        assert!(value_is(Fate::Negative).contains(
            "ifNull(isFinite(row_value) AND row_value <= 1e9, 0)) AND NOT (1 AND ifNull(row_value >= 0, 0))"
        ));
    }
}

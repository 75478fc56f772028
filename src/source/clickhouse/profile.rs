//! Settings of a user's profile under which a server answers with less than it was asked for, or with something else, and
//! says nothing. What is in force is asked for at the beginning, and overridden where the user may.

use clickhouse::Row;
use serde::Deserialize;

use super::error::Failure;
use super::session::Attempt;

/// What the server does when a limit is reached: each mode with the limits that it is about.
const MODES: [(&str, &[&str]); 9] = [
    ("read_overflow_mode", &["max_rows_to_read", "max_bytes_to_read"]),
    ("group_by_overflow_mode", &["max_rows_to_group_by"]),
    ("sort_overflow_mode", &["max_rows_to_sort", "max_bytes_to_sort"]),
    ("result_overflow_mode", &["max_result_rows", "max_result_bytes"]),
    ("timeout_overflow_mode", &["max_execution_time"]),
    ("set_overflow_mode", &["max_rows_in_set", "max_bytes_in_set"]),
    ("join_overflow_mode", &["max_rows_in_join", "max_bytes_in_join"]),
    (
        "transfer_overflow_mode",
        &["max_rows_to_transfer", "max_bytes_to_transfer"],
    ),
    (
        "distinct_overflow_mode",
        &["max_rows_in_distinct", "max_bytes_in_distinct"],
    ),
];
/// The same of servers that work for another one; not every version knows them.
const LEAF_MODES: [(&str, &[&str]); 2] = [
    (
        "read_overflow_mode_leaf",
        &["max_rows_to_read_leaf", "max_bytes_to_read_leaf"],
    ),
    ("timeout_overflow_mode_leaf", &["max_execution_time_leaf"]),
];
/// The mode in which a query that reaches a limit is refused.
const THROW: &str = "throw";
/// Settings that change what a query means, and their usual values.
const USUAL: [(&str, &str); 6] = [
    ("limit", "0"),
    ("offset", "0"),
    ("aggregate_functions_null_for_empty", "0"),
    ("empty_result_for_aggregation_by_empty_set", "0"),
    ("skip_unavailable_shards", "0"),
    ("transform_null_in", "0"),
];
/// The same; not every version knows them.
const USUAL_OF_NEW: [(&str, &str); 6] = [
    ("prefer_column_name_to_alias", "0"),
    ("group_by_use_nulls", "0"),
    ("additional_result_filter", ""),
    ("additional_table_filters", "{}"),
    // A count from a cache would tell nothing of an insert just now.
    ("use_query_cache", "0"),
    // Rows that are said to be written and may still be lost.
    ("wait_for_async_insert", "1"),
];
/// What a user may change: 0 all settings and data, 1 neither, 2 settings.
const READONLY: &str = "readonly";

/// A setting with the value in force.
type InForce = (String, String);

/// Settings that are sent along with every query.
pub(super) type Overrides = Vec<(&'static str, &'static str)>;

#[derive(Row, Deserialize)]
struct Setting {
    name: String,
    value: String,
}

/// What has to be sent along so that answers are whole.
///
/// # Errors
/// [`Failure::Profile`] where the user may not override.
pub(super) async fn overrides(attempt: &Attempt<'_>) -> Result<Overrides, Failure> {
    let known = in_force(attempt).await?;
    let mut wanted = harmful(&known, &MODES, &USUAL);
    if !wanted.is_empty() {
        check_allowed(&known, &wanted)?;
        attempt.override_settings(&wanted);
    }
    // Under the settings above this list is whole.
    let newer = of_new(attempt)
        .await
        .map_err(|failure| not_overridden(failure, &known, &wanted))?;
    let further = harmful(&newer, &LEAF_MODES, &USUAL_OF_NEW);
    if !further.is_empty() {
        let all: Vec<InForce> = known.iter().chain(&newer).cloned().collect();
        check_allowed(&all, &further)?;
        wanted.extend(further);
        attempt.override_settings(&wanted);
    }
    if wanted.is_empty() {
        return Ok(wanted);
    }
    // A server may take a setting and not follow it.
    let again = in_force(attempt)
        .await
        .map_err(|failure| not_overridden(failure, &known, &wanted))?;
    let left = harmful(&again, &MODES, &USUAL);
    if !left.is_empty() {
        return Err(Failure::Profile(named(&again, &left)));
    }
    Ok(wanted)
}

/// The settings that every version knows, in an answer of one row: it is there or not.
async fn in_force(attempt: &Attempt<'_>) -> Result<Vec<InForce>, Failure> {
    let modes = MODES.iter().flat_map(|(mode, limits)| limits.iter().chain([mode]));
    let names: Vec<&str> = modes
        .chain(USUAL.iter().map(|(name, _)| name))
        .chain([&READONLY])
        .copied()
        .collect();
    let values: Vec<String> = names
        .iter()
        .map(|name| format!("toString(getSetting('{name}'))"))
        .collect();
    let sql = format!("SELECT [{}] AS in_force", values.join(", "));
    let answer = attempt.query(&sql).fetch_optional::<Vec<String>>().await;
    match answer.map_err(|error| attempt.failure(&error))? {
        Some(values) => Ok(names.into_iter().map(str::to_owned).zip(values).collect()),
        // Nothing else takes the only row away.
        None => Err(Failure::Profile(
            "an answer of one row came without it, as with offset, additional_result_filter, or result_overflow_mode or \
             timeout_overflow_mode and next to no limit"
                .to_owned(),
        )),
    }
}

async fn of_new(attempt: &Attempt<'_>) -> Result<Vec<InForce>, Failure> {
    let modes = LEAF_MODES.iter().flat_map(|(mode, limits)| limits.iter().chain([mode]));
    let names: Vec<&str> = modes
        .chain(USUAL_OF_NEW.iter().map(|(name, _)| name))
        .copied()
        .collect();
    let sql = "SELECT name, value FROM system.settings WHERE name IN {names:Array(String)}";
    let settings = attempt.query(sql).param("names", names).fetch_all::<Setting>().await;
    let settings = settings.map_err(|error| attempt.failure(&error))?;
    Ok(settings
        .into_iter()
        .map(|Setting { name, value }| (name, value))
        .collect())
}

/// What has to be overridden, with the values that do.
fn harmful(known: &[InForce], modes: &[(&'static str, &[&str])], usual: &[(&'static str, &'static str)]) -> Overrides {
    let value = |asked: &str| {
        known
            .iter()
            .find(|(name, _)| name == asked)
            .map(|(_, value)| value.as_str())
    };
    let is_limit = |limit: &&str| value(limit).is_some_and(|value| value.parse() != Ok(0.0));
    let modes = modes
        .iter()
        .filter(|(mode, limits)| value(mode).is_some_and(|mode| mode != THROW) && limits.iter().any(is_limit));
    let unusual = usual.iter().filter(|(name, usual)| {
        // Truth values are written in two ways.
        let plain = |value: &str| match value {
            "false" => "0".to_owned(),
            "true" => "1".to_owned(),
            // A map without entries, in some versions.
            "" if *usual == "{}" => "{}".to_owned(),
            other => other.to_owned(),
        };
        value(name).is_some_and(|value| plain(value) != *usual)
    });
    modes.map(|(mode, _)| (*mode, THROW)).chain(unusual.copied()).collect()
}

fn check_allowed(known: &[InForce], wanted: &Overrides) -> Result<(), Failure> {
    match known.iter().find(|(name, _)| name == READONLY) {
        Some((_, readonly)) if readonly == "1" => Err(Failure::Profile(named(known, wanted))),
        _ => Ok(()),
    }
}

/// A refusal of what was sent along names the settings that made it necessary.
fn not_overridden(failure: Failure, known: &[InForce], wanted: &Overrides) -> Failure {
    /// READONLY, SETTING_CONSTRAINT_VIOLATION, UNKNOWN_SETTING.
    const REFUSALS: [u32; 3] = [164, 452, 115];
    match failure {
        Failure::Refused { code, .. } if REFUSALS.contains(&code) && !wanted.is_empty() => {
            Failure::Profile(named(known, wanted))
        }
        other => other,
    }
}

/// Settings with the values that were found, and the limits of modes.
fn named(known: &[InForce], wanted: &Overrides) -> String {
    let limits = |setting: &'static str| {
        let mut modes = MODES.iter().chain(&LEAF_MODES);
        modes
            .find(|(mode, _)| *mode == setting)
            .map_or(&[][..], |(_, limits)| limits)
    };
    let mut words = Vec::new();
    let found = |setting: &str| known.iter().find(|(known, _)| known == setting);
    for (setting, _) in wanted {
        let of_mode = limits(setting).iter().filter_map(|limit| found(limit));
        // A limit of 0 is none.
        let named = found(setting)
            .into_iter()
            .chain(of_mode.filter(|(_, value)| value != "0"));
        words.extend(named.map(|(name, value)| format!("{name} = {value}")));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(settings: &[(&str, &str)]) -> Vec<InForce> {
        settings
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_mode_without_its_limit_does_no_harm() {
        let usual = found(&[
            ("read_overflow_mode", "break"),
            ("max_rows_to_read", "0"),
            ("limit", "0"),
        ]);
        assert!(harmful(&usual, &MODES, &USUAL).is_empty());
        let throwing = found(&[("read_overflow_mode", "throw"), ("max_rows_to_read", "9")]);
        assert!(harmful(&throwing, &MODES, &USUAL).is_empty());
    }

    #[test]
    fn a_setting_that_is_off_is_named_as_well() {
        let known = found(&[("wait_for_async_insert", "0"), ("readonly", "1")]);
        let wanted = harmful(&known, &LEAF_MODES, &USUAL_OF_NEW);
        assert_eq!(wanted, [("wait_for_async_insert", "1")]);
        assert_eq!(named(&known, &wanted), "wait_for_async_insert = 0");
    }

    #[test]
    fn what_cuts_is_named_with_its_limit_and_overridden() {
        let known = found(&[
            ("read_overflow_mode", "break"),
            ("max_rows_to_read", "9"),
            ("group_by_overflow_mode", "any"),
            ("max_rows_to_group_by", "3"),
            ("limit", "5"),
            ("readonly", "1"),
        ]);
        let wanted = harmful(&known, &MODES, &USUAL);
        assert_eq!(
            wanted,
            [
                ("read_overflow_mode", "throw"),
                ("group_by_overflow_mode", "throw"),
                ("limit", "0")
            ]
        );
        let refused = check_allowed(&known, &wanted).expect_err("it is read-only").to_string();
        for word in ["read_overflow_mode = break", "max_rows_to_read = 9", "limit = 5"] {
            assert!(refused.contains(word), "{refused}");
        }
        assert!(check_allowed(&found(&[("readonly", "2")]), &wanted).is_ok());
    }
}

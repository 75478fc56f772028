//! What a table's columns are, and the SQL that reads each of them in one shape whatever its type.

use clickhouse::Row;
use serde::Deserialize;

use super::error::Failure;
use super::session::Attempt;
use crate::contract::columns::{OPTIONAL, REQUIRED};

/// A null integer on the wire: no rank, iteration or time has this value.
pub(super) const NULL: i64 = i64::MIN;

/// How a table is read. Every text is a piece of SQL.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// What follows FROM.
    pub from: String,
    /// Microseconds since the epoch, null where the cell is.
    pub micros: String,
    /// The time column's own scale, to bound it by a constant: an index can use that.
    pub time: TimeColumn,
    /// Name of the timer or group.
    pub subname: &'static str,
    /// Machine, '' where it is null or the column is missing.
    pub node: &'static str,
    /// Run, '' where it is null or the column is missing.
    pub run: &'static str,
    /// First element of `metric_values`, null where there is none.
    pub value: &'static str,
    /// Whether the table has a column `node`.
    pub has_node: bool,
    /// Whether the table has a column `rerun_uuid`.
    pub has_run: bool,
    /// Every column with its type, in the table's order.
    pub columns: Vec<Column>,
}

/// How the column `timestamp` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeColumn {
    /// `DateTime`: whole seconds.
    Seconds,
    /// `DateTime64`: fractions.
    Fractions,
}

/// A column of the table.
#[derive(Debug, Clone, Row, Deserialize)]
pub(super) struct Column {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// How the column comes by its cells: '' and DEFAULT can be written.
    pub default_kind: String,
}

impl Column {
    /// The type without what only says how it is stored or that it may be null.
    pub fn bare(&self) -> &str {
        bare(&self.kind)
    }
}

pub(super) fn bare(kind: &str) -> &str {
    ["LowCardinality(", "Nullable("].iter().fold(kind, |kind, wrapper| {
        kind.strip_prefix(wrapper)
            .and_then(|inner| inner.strip_suffix(')'))
            .unwrap_or(kind)
    })
}

#[derive(Row, Deserialize)]
struct Engine {
    engine: String,
    engine_full: String,
}

impl Layout {
    /// Asks the server.
    ///
    /// # Errors
    /// A table that is not there, lacks a column, or has one of a type that can't stand for what it should.
    pub async fn ask(attempt: &Attempt<'_>) -> Result<Self, Failure> {
        let columns = "SELECT name, type, default_kind FROM system.columns \
                       WHERE database = currentDatabase() AND table = {table:String} ORDER BY position";
        let columns: Vec<Column> = attempt
            .query(columns)
            .fetch_all()
            .await
            .map_err(|error| attempt.failure(&error))?;
        if columns.is_empty() {
            return Err(Failure::Refused {
                code: 60,
                text: "there is no such table, or the user may not see it".to_owned(),
            });
        }
        let latest_only = keeps_duplicates_until_merged(attempt).await?;
        Self::of(columns, latest_only)
    }

    fn of(columns: Vec<Column>, latest_only: bool) -> Result<Self, Failure> {
        let find = |name: &str| columns.iter().find(|column| column.name == name);
        if let Some(missing) = REQUIRED.iter().find(|name| find(name).is_none()) {
            let found: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            return Err(Failure::Layout(format!(
                "column `{missing}` is missing; found {}",
                found.join(", ")
            )));
        }
        let kind = |name: &str| find(name).map_or("", Column::bare);
        let wrong = |name: &str, expected: &str| {
            let found = find(name).map_or("", |column| column.kind.as_str());
            Failure::Layout(format!("column `{name}` has type {found}, expected {expected}"))
        };
        for name in ["rank", "iteration"] {
            if !is_integer(kind(name)) {
                return Err(wrong(name, "an integer"));
            }
        }
        for name in ["job", "metric_name", "subname"].into_iter().chain(OPTIONAL) {
            // An enumeration or UUID becomes its text; what is nested has none that would be a name.
            let nested = ["Array(", "Map(", "Tuple(", "JSON", "Object("];
            if nested.iter().any(|nested| kind(name).starts_with(nested)) {
                return Err(wrong(name, "text"));
            }
        }
        let is_number = |element: &&str| is_integer(element) || element.starts_with("Float");
        if find("metric_values")
            .and_then(|column| element_of(&column.kind))
            .filter(is_number)
            .is_none()
        {
            return Err(wrong("metric_values", "an array of numbers"));
        }
        let time = match kind("timestamp") {
            time if time == "DateTime" || time.starts_with("DateTime(") => TimeColumn::Seconds,
            time if time.starts_with("DateTime64(") => TimeColumn::Fractions,
            _ => return Err(wrong("timestamp", "DateTime or DateTime64")),
        };
        let micros = match time {
            TimeColumn::Seconds => "toInt64(toUnixTimestamp(timestamp)) * 1000000",
            TimeColumn::Fractions => "toUnixTimestamp64Micro(timestamp)",
        };
        let (has_node, has_run) = (find("node").is_some(), find("rerun_uuid").is_some());
        Ok(Self {
            from: format!("{{table:Identifier}}{}", if latest_only { " FINAL" } else { "" }),
            micros: micros.to_owned(),
            time,
            subname: "ifNull(toString(subname), '')",
            node: if has_node { "ifNull(toString(node), '')" } else { "''" },
            run: if has_run {
                "ifNull(toString(rerun_uuid), '')"
            } else {
                "''"
            },
            // The first element of an empty array would be 0.
            value: "if(notEmpty(metric_values), toFloat64(metric_values[1]), NULL)",
            has_node,
            has_run,
            columns,
        })
    }

    /// Whether the table has a column.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// Conditions on the time column, both ends included, as constants of its own scale, which an index can use.
    pub fn between(&self, start: Option<i64>, end: Option<i64>) -> String {
        let mut sql = String::new();
        let seconds = |micros: i64| micros.clamp(0, i64::from(u32::MAX) * 1_000_000);
        for (micros, sign) in [(start, ">="), (end, "<=")] {
            let Some(micros) = micros else { continue };
            let (sign, moment) = match (self.time, sign) {
                (TimeColumn::Fractions, ">=") => (">=", format!("fromUnixTimestamp64Micro(toInt64({micros}))")),
                // Times are read to the microsecond: what a column of nanoseconds holds beyond it belongs to it.
                (TimeColumn::Fractions, _) => {
                    let next = micros.saturating_add(1);
                    ("<", format!("fromUnixTimestamp64Micro(toInt64({next}))"))
                }
                // No whole second lies between the bound and the next one inwards.
                (TimeColumn::Seconds, ">=") => {
                    let up = seconds(micros).div_euclid(1_000_000) + i64::from(seconds(micros) % 1_000_000 > 0);
                    (sign, format!("toDateTime({up})"))
                }
                (TimeColumn::Seconds, _) => (sign, format!("toDateTime({})", seconds(micros).div_euclid(1_000_000))),
            };
            sql += &format!(" AND timestamp {sign} {moment}");
        }
        sql
    }
}

/// The type of an array's elements.
fn element_of(kind: &str) -> Option<&str> {
    kind.strip_prefix("Array(")?.strip_suffix(')').map(bare)
}

fn is_integer(kind: &str) -> bool {
    let bits = kind.strip_prefix("UInt").or_else(|| kind.strip_prefix("Int"));
    matches!(bits, Some("8" | "16" | "32" | "64"))
}

/// Whether the engine drops superseded rows only when it merges, so that reading must ask for the latest ones. On
/// other engines FINAL is an error, and as a setting it is refused to read-only users.
async fn keeps_duplicates_until_merged(attempt: &Attempt<'_>) -> Result<bool, Failure> {
    let sql = "SELECT engine, engine_full FROM system.tables \
               WHERE database = if({database:String} = '', currentDatabase(), {database:String}) AND name = {name:String}";
    let ask = async |database: &str, name: &str| {
        let query = attempt.query(sql).param("database", database).param("name", name);
        query
            .fetch_optional::<Engine>()
            .await
            .map_err(|error| attempt.failure(&error))
    };
    let merges = |engine: &str| {
        ["Replacing", "Collapsing", "Aggregating", "Summing"]
            .iter()
            .any(|kind| engine.contains(kind))
    };
    let Some(found) = ask("", attempt.table()).await? else {
        return Ok(false);
    };
    if found.engine != "Distributed" {
        return Ok(merges(&found.engine));
    }
    // The shards' tables decide, and one of them is mostly here too.
    let Some((database, name)) = shards_table(&found.engine_full) else {
        return Ok(false);
    };
    Ok(ask(&database, &name).await?.is_some_and(|local| merges(&local.engine)))
}

/// Database and table in `Distributed('cluster', 'database', 'table', ...)`.
fn shards_table(engine: &str) -> Option<(String, String)> {
    let mut arguments = engine.strip_prefix("Distributed(")?.split(',').skip(1);
    let mut next = || {
        let argument = arguments.next()?.trim().trim_end_matches(')');
        Some(argument.trim_matches(['\'', '`']).to_owned())
    };
    Some((next()?, next()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A table's usual layout.
    pub fn layout() -> Layout {
        Layout::of(columns("DateTime('UTC')", "Array(Float64)"), false).expect("a layout")
    }

    fn columns(timestamp: &str, values: &str) -> Vec<Column> {
        [
            ("timestamp", timestamp),
            ("job", "LowCardinality(String)"),
            ("metric_name", "String"),
            ("subname", "LowCardinality(Nullable(String))"),
            ("rank", "Int32"),
            ("iteration", "Nullable(UInt64)"),
            ("metric_values", values),
            ("attributes", "Object('json')"),
        ]
        .map(|(name, kind)| Column {
            name: name.to_owned(),
            kind: kind.to_owned(),
            default_kind: String::new(),
        })
        .to_vec()
    }

    #[test]
    fn both_kinds_of_time_are_bounded_by_constants() {
        let seconds = Layout::of(columns("DateTime('UTC')", "Array(Float64)"), false).expect("a layout");
        assert_eq!(
            seconds.between(Some(1_500_000), Some(2_500_000)),
            " AND timestamp >= toDateTime(2) AND timestamp <= toDateTime(2)"
        );
        let fractions = Layout::of(columns("DateTime64(3, 'UTC')", "Array(Float32)"), true).expect("a layout");
        assert_eq!(
            fractions.between(Some(1_500_000), None),
            " AND timestamp >= fromUnixTimestamp64Micro(toInt64(1500000))"
        );
        assert!(fractions.from.ends_with("FINAL") && !seconds.from.ends_with("FINAL"));
        assert!(!seconds.has_node && seconds.has("attributes"));
    }

    #[test]
    fn a_wrong_type_names_the_column() {
        for (timestamp, values, column) in [
            ("String", "Array(Float64)", "timestamp"),
            ("DateTime", "Float64", "metric_values"),
            ("DateTime", "Array(String)", "metric_values"),
        ] {
            let error = Layout::of(columns(timestamp, values), false)
                .expect_err("refused")
                .to_string();
            assert!(error.contains(column), "{error}");
        }
        let mut lacking = columns("DateTime", "Array(Float64)");
        lacking.remove(4);
        let error = Layout::of(lacking, false).expect_err("refused").to_string();
        assert!(error.contains("`rank` is missing; found timestamp"), "{error}");
    }

    #[test]
    fn the_table_behind_a_distributed_one_is_found() {
        let found = shards_table("Distributed('c', 'db', 'local', cityHash64(job))");
        assert_eq!(found, Some(("db".to_owned(), "local".to_owned())));
        assert_eq!(
            shards_table("Distributed(c, db, local)"),
            Some(("db".to_owned(), "local".to_owned()))
        );
        assert_eq!(shards_table("MergeTree ORDER BY job"), None);
    }
}

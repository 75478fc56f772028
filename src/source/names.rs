//! Which column of a source is which of the contract: by its name, by the same name in capitals, by what people call it, or as
//! the user says.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

use super::columns::Columns;
use super::error::SourceError;
use crate::contract::columns::{OPTIONAL, REQUIRED, STORED};

/// Other names that columns have, the likeliest first.
const ALIASES: [(&str, &[&str]); 11] = [
    ("timestamp", &["time", "ts", "datetime", "event_time"]),
    ("job", &["job_id", "job_name", "jobid"]),
    ("metric_name", &["metric"]),
    ("subname", &["sub_name", "timer", "timer_name"]),
    ("rank", &["global_rank", "rank_id"]),
    ("iteration", &["step", "iter", "global_step"]),
    ("metric_values", &["metric_value", "values", "value"]),
    ("node", &["node_name", "hostname", "host", "host_name"]),
    ("rerun_uuid", &["run_uuid", "rerun_id", "run_id"]),
    ("cluster", &["cluster_name"]),
    ("attributes", &["attrs"]),
];

/// The columns that the user has named.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ColumnNames {
    /// Column of the contract -> its name in the source.
    given: BTreeMap<&'static str, String>,
}

/// A column and what it is called in a source: `node=hostname`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedColumn {
    column: &'static str,
    name: String,
}

/// Why a text names no column.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NamedColumnError {
    /// No `=` in it, or nothing behind it.
    #[error("expected COLUMN=NAME, such as node=hostname")]
    Form,
    /// A column that the contract does not have.
    #[error("there is no column `{0}`; there are {known}", known = known().collect::<Vec<_>>().join(", "))]
    Unknown(String),
}

fn known() -> impl Iterator<Item = &'static str> {
    REQUIRED.into_iter().chain(OPTIONAL).chain(STORED)
}

impl FromStr for NamedColumn {
    type Err = NamedColumnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (column, name) = text.split_once('=').ok_or(NamedColumnError::Form)?;
        let (column, name) = (column.trim(), name.trim());
        if name.is_empty() {
            return Err(NamedColumnError::Form);
        }
        let unknown = || NamedColumnError::Unknown(column.to_owned());
        Ok(Self {
            column: known().find(|known| *known == column).ok_or_else(unknown)?,
            name: name.to_owned(),
        })
    }
}

impl FromIterator<NamedColumn> for ColumnNames {
    fn from_iter<I: IntoIterator<Item = NamedColumn>>(named: I) -> Self {
        Self {
            given: named.into_iter().map(|named| (named.column, named.name)).collect(),
        }
    }
}

/// Where the columns of the contract stand in a source.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// Column of the contract and its place among the source's, in the order of the contract.
    places: Vec<(&'static str, usize)>,
    /// Columns that were found by another name, a sentence each.
    pub notes: Vec<String>,
}

impl Places {
    /// The place of a column; `None` where the source lacks it.
    pub fn of(&self, column: &str) -> Option<usize> {
        let found = self.places.iter().find(|(known, _)| *known == column);
        found.map(|&(_, place)| place)
    }

    /// Every column that is there, with its place.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.places.iter().copied()
    }
}

impl ColumnNames {
    /// What the user says that a column is called.
    pub(super) fn given(&self, column: &str) -> Option<&str> {
        self.given.get(column).map(String::as_str)
    }

    /// Finds the columns of the contract among those that a source has.
    ///
    /// A name that the user gave counts alone; then the name itself, then the same in other letters (`Rank`, `METRIC_NAME`), then
    /// what people call it, which is told in a note.
    ///
    /// # Errors
    /// A required column that is not there, one that is there twice, a name of the user's that is not there.
    pub(super) fn places<S: AsRef<str>>(
        &self,
        path: &Path,
        there: &[S],
        columns: Columns,
    ) -> Result<Places, SourceError> {
        let mut places = Places::default();
        let found = || there.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
        let taken = |places: &Places, place: usize| places.places.iter().any(|&(_, taken)| taken == place);
        let is_given = |name: &str| self.given.values().any(|given| given == name);
        for column in columns.known() {
            let place = if let Some(name) = self.given.get(column) {
                let place = one(path, column, there, |there| there.trim() == name)?;
                if place.is_none() {
                    return Err(SourceError::UnknownName {
                        path: path.to_owned(),
                        column,
                        name: name.clone(),
                        found: found(),
                    });
                }
                place
            } else {
                let own = one(path, column, there, |there| there.trim() == column && !is_given(there))?;
                match own {
                    Some(place) => Some(place),
                    None => one(path, column, there, |there| same(there, column) && !is_given(there))?,
                }
            };
            if let Some(place) = place {
                places.places.push((column, place));
            }
        }
        // What people call a column is looked for last, so that it takes none that has its own name.
        for (column, aliases) in ALIASES {
            if places.of(column).is_some() || !columns.known().any(|known| known == column) {
                continue;
            }
            for alias in aliases {
                let place = one(path, column, there, |there| same(there, alias) && !is_given(there))?;
                if let Some(place) = place.filter(|&place| !taken(&places, place)) {
                    let name = there[place].as_ref().trim();
                    let note = format!("{}: column `{name}` is read as `{column}`", path.display());
                    places.places.push((column, place));
                    places.notes.push(note);
                    break;
                }
            }
        }
        if let Some(column) = REQUIRED.into_iter().find(|column| places.of(column).is_none()) {
            return Err(SourceError::MissingColumn {
                path: path.to_owned(),
                column,
                found: found(),
            });
        }
        Ok(places)
    }
}

/// Whether two names differ in their letters' case and their separators only.
fn same(name: &str, column: &str) -> bool {
    let plain = |letter: u8| match letter {
        b'-' | b' ' | b'.' => b'_',
        other => other.to_ascii_lowercase(),
    };
    name.trim().bytes().map(plain).eq(column.bytes())
}

/// The one place whose name fits.
fn one<S: AsRef<str>>(
    path: &Path,
    column: &'static str,
    there: &[S],
    fits: impl Fn(&str) -> bool,
) -> Result<Option<usize>, SourceError> {
    let mut places = (0..there.len()).filter(|&place| fits(there[place].as_ref()));
    let first = places.next();
    match places.next() {
        None => Ok(first),
        Some(_) => Err(SourceError::DoubleColumn {
            path: path.to_owned(),
            column,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [&str; 7] = REQUIRED;

    fn places(given: &[&str], there: &[&str]) -> Result<Places, SourceError> {
        let names: ColumnNames = given
            .iter()
            .map(|text| text.parse::<NamedColumn>().expect("a name"))
            .collect();
        names.places(Path::new("f.csv"), there, Columns::Analysed)
    }

    fn with(more: &[&'static str]) -> Vec<&'static str> {
        OWN.iter().chain(more).copied().collect()
    }

    #[test]
    fn own_names_come_first_then_capitals_then_what_people_say() {
        let found = places(&[], &with(&["host", "node"])).expect("columns");
        assert_eq!((found.of("node"), found.notes.len()), (Some(8), 0));
        let capitals = OWN.map(str::to_ascii_uppercase);
        let found = places(&[], &capitals.iter().map(String::as_str).collect::<Vec<_>>()).expect("columns");
        assert_eq!((found.of("metric_values"), found.notes.len()), (Some(6), 0));
        let found = places(&[], &with(&["Hostname"])).expect("columns");
        assert_eq!(found.of("node"), Some(7));
        assert_eq!(found.notes, ["f.csv: column `Hostname` is read as `node`"]);
        let renamed = ["ts", "job_id", "metric", "timer", "global rank", "step", "value"];
        assert_eq!(places(&[], &renamed).expect("columns").notes.len(), 7);
    }

    #[test]
    fn the_user_s_name_counts_alone() {
        let found = places(&["node=machine"], &with(&["node", "machine"])).expect("columns");
        assert_eq!(found.of("node"), Some(8));
        // A column that was named as another is not its own any more.
        let found = places(&["node=cluster"], &with(&["cluster"])).expect("columns");
        assert_eq!(found.of("node"), Some(7));
        let error = places(&["node=machine"], &with(&["node"])).expect_err("no such column");
        assert!(error.to_string().contains("`machine`"), "{error}");
    }

    #[test]
    fn what_is_twice_or_missing_is_refused() {
        assert!(matches!(
            places(&[], &with(&["rank"])),
            Err(SourceError::DoubleColumn { column: "rank", .. })
        ));
        let twice = [
            "timestamp",
            "job",
            "metric_name",
            "subname",
            "Rank",
            "RANK",
            "iteration",
            "metric_values",
        ];
        assert!(matches!(
            places(&[], &twice),
            Err(SourceError::DoubleColumn { column: "rank", .. })
        ));
        let error = places(&[], &["timestamp", "job"]).expect_err("columns are missing");
        assert!(error.to_string().contains("`metric_name` is missing"), "{error}");
    }

    #[test]
    fn a_name_has_a_column_before_it() {
        assert_eq!("node=host".parse::<NamedColumn>().map(|named| named.column), Ok("node"));
        assert_eq!("node".parse::<NamedColumn>(), Err(NamedColumnError::Form));
        assert_eq!("node=".parse::<NamedColumn>(), Err(NamedColumnError::Form));
        let error = "host=node"
            .parse::<NamedColumn>()
            .expect_err("no such column")
            .to_string();
        assert!(error.contains("`host`") && error.contains("metric_values"), "{error}");
    }
}

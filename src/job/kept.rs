//! What the pass over the rows keeps: columns, names as codes, the latest of several values.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::source::Micros;

/// Kept timer rows, in columns.
#[derive(Debug, Default)]
pub(super) struct TimerRows {
    pub timer: Vec<u32>,
    pub run: Vec<u32>,
    pub rank: Vec<u32>,
    pub iteration: Vec<i64>,
    pub timestamp: Vec<Micros>,
    pub seconds: Vec<f64>,
}

impl TimerRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.timer.len()
    }
}

/// What is known of a run from all of its timer rows up to `--end`, in the window or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunExtent {
    pub first_time: Micros,
    pub last_time: Micros,
    pub first_iteration: i64,
    pub last_iteration: i64,
}

impl RunExtent {
    /// Takes in what is known of more of its rows.
    pub fn merge(&mut self, other: &Self) {
        self.first_time = self.first_time.min(other.first_time);
        self.last_time = self.last_time.max(other.last_time);
        self.first_iteration = self.first_iteration.min(other.first_iteration);
        self.last_iteration = self.last_iteration.max(other.last_iteration);
    }
}

/// Names in order of first appearance, with their positions.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub names: Vec<String>,
    lookup: FxHashMap<String, u32>,
}

impl Names {
    /// The position of a name, which is appended when it is new.
    pub fn code(&mut self, name: &str) -> u32 {
        if let Some(&code) = self.lookup.get(name) {
            return code;
        }
        let code = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.lookup.insert(name.to_owned(), code);
        code
    }
}

/// The latest value that was seen for a key; of two at the same moment the greater one, so that the order of
/// rows does not matter.
pub(super) type Latest<K, V> = BTreeMap<K, (Micros, V)>;

/// Remembers a value unless a later one is known.
pub(super) fn keep_latest<K: Ord, V: PartialOrd>(map: &mut Latest<K, V>, key: K, time: Micros, value: V) {
    match map.get_mut(&key) {
        Some(known) if (known.0, &known.1) >= (time, &value) => {}
        Some(known) => *known = (time, value),
        None => {
            map.insert(key, (time, value));
        }
    }
}

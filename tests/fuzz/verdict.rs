//! What the program says of a file, in this process.

use std::path::Path;

use mt_detector::job::{Selection, load, slow_windows};
use mt_detector::report::{Asked, Report};
use mt_detector::rules::{RulesSettings, judge};
use mt_detector::source::discover;

/// An error, or a verdict with the counts of rows and the moves of ranks between nodes.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Refused(String),
    Told {
        verdict: serde_json::Value,
        quality: serde_json::Value,
    },
}

impl Answer {
    pub fn verdict(&self) -> Option<&serde_json::Value> {
        match self {
            Self::Refused(_) => None,
            Self::Told { verdict, .. } => Some(verdict),
        }
    }

    pub fn quality(&self) -> Option<&serde_json::Value> {
        match self {
            Self::Refused(_) => None,
            Self::Told { quality, .. } => Some(quality),
        }
    }

    /// Whether it is a verdict without nodes, and the same otherwise: the column with their names, which files need not have, has
    /// another name now.
    pub fn lost_its_nodes(&self, clean: &Self) -> bool {
        let without = |answer: &Self| {
            let mut verdict = answer.verdict().cloned().unwrap_or_default();
            verdict["anomaly_nodes"] = serde_json::json!([]);
            verdict
        };
        self.verdict().is_some_and(|verdict| *verdict == without(clean))
    }

    /// Whether it says that some rank has rows of more than one node.
    pub fn doubts_a_node(&self) -> bool {
        self.quality()
            .is_some_and(|quality| quality[0]["ranks_on_several_nodes"].as_u64() > Some(0))
    }

    pub fn names_rank_5(&self) -> bool {
        self.verdict()
            .is_some_and(|verdict| verdict["anomaly_ranks"] == serde_json::json!([5]))
    }
}

/// Reads, judges and sums up a file as `analyze` does.
pub fn answer(path: &Path) -> Answer {
    let refused = |error: &dyn std::fmt::Display| Answer::Refused(error.to_string());
    let found = match discover(&[path.to_owned()]) {
        Ok(found) => found,
        Err(error) => return refused(&error),
    };
    let selection = Selection {
        job: Some("job".to_owned()),
        warmup: 2,
        ..Selection::default()
    };
    let job = match load(&found.files, &selection, &|_| ()) {
        Ok(job) => job,
        Err(error) => return refused(&error),
    };
    let settings = RulesSettings::default();
    let step_times = slow_windows(&job, 1.3);
    let asked = Asked {
        source: Vec::new(),
        files_passed_over: Vec::new(),
        settings: &settings,
        iterations: "all".to_owned(),
        warmup: selection.warmup,
        step_times: &step_times,
    };
    let report = Report::new(&job, judge(&job, &settings, &[]), asked);
    let summary = serde_json::to_value(&report.summary).expect("a summary");
    let mut verdict = serde_json::Map::new();
    for key in ["status", "anomaly_ranks", "anomaly_nodes", "anomaly_links", "cause"] {
        verdict.insert(key.to_owned(), summary[key].clone());
    }
    Answer::Told {
        verdict: verdict.into(),
        quality: serde_json::json!([summary["data_quality"], summary["moves"]]),
    }
}

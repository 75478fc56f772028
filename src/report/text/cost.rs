//! What faults cost, in words.

use crate::verdict::Finding;
use crate::whatif::timers::{Basis, WhatIf};

/// A part of the cost that differs from the finding's own by more than this share is told beside it.
const HIDDEN_PART: f64 = 0.1;

/// What all faults cost, and what else makes the steps long.
pub(crate) fn cost(what_if: &WhatIf) -> String {
    if let Some(reason) = &what_if.reason {
        return format!("not told: {reason}");
    }
    let known = |share: Option<f64>| 100.0 * share.unwrap_or_default();
    let off = what_if
        .replay_error
        .map_or(String::new(), |error| format!(", off by {:.1} %", 100.0 * error));
    let basis = match what_if.basis {
        Basis::Calls => "single calls",
        Basis::Sums => "sums of each iteration",
    };
    let faults = match (what_if.step_seconds, what_if.faults_share) {
        (Some(step), Some(share)) if share > 0.0 => format!(
            "steps {step:.2} s instead of {:.2} s (+{:.1} %), {} and {} GPU-hours lost in the window to the faults",
            step / (1.0 + share),
            100.0 * share,
            seconds_in_words(what_if.seconds.unwrap_or_default()),
            hours_in_words(what_if.gpu_hours.unwrap_or_default()),
        ),
        (Some(step), _) => format!("steps {step:.2} s, nothing lost to faults"),
        _ => "nothing lost to faults".to_owned(),
    };
    let hidden = match (what_if.only_together_seconds, what_if.seconds) {
        (Some(together), Some(all)) if all > 0.0 && together > HIDDEN_PART * all => format!(
            ", {} of it only with several findings mended at once, for they hide each other",
            seconds_in_words(together)
        ),
        _ => String::new(),
    };
    format!(
        "{faults}{hidden}; stages +{:.1} %, data +{:.1} %, not explained +{:.1} % (replayed from {basis}{off})",
        known(what_if.stages_share),
        known(what_if.data_share),
        known(what_if.unexplained_share),
    )
}

/// What mending a finding alone saves, and its part where others hide it.
pub(super) fn cost_alone(finding: &Finding, growth: f64) -> String {
    let mut text = format!("steps take {:.1} % longer than with this alone mended", 100.0 * growth);
    if let (Some(seconds), Some(hours)) = (finding.cost_seconds, finding.cost_gpu_hours) {
        let (seconds, hours) = (seconds_in_words(seconds), hours_in_words(hours));
        text += &format!("; {seconds} and {hours} GPU-hours of the window");
    }
    let alone = finding.cost_seconds.unwrap_or_default();
    match finding.cost_part_seconds {
        Some(part) if (part - alone).abs() > HIDDEN_PART * part.abs().max(alone.abs()) => {
            text + &format!("; its part in what all findings cost is {}", seconds_in_words(part))
        }
        _ => text,
    }
}

fn seconds_in_words(seconds: f64) -> String {
    if seconds.abs() < 10.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{seconds:.0} s")
    }
}

fn hours_in_words(hours: f64) -> String {
    if hours.abs() < 0.1 {
        format!("{hours:.3}")
    } else {
        format!("{hours:.1}")
    }
}

//! `analyze --machines`: hardware metrics beside the timers.

use std::path::PathBuf;

use crate::machines::MachinesError;
use crate::machines::detect::Settings;
use crate::machines::input::read;
use crate::machines::model::store::Models;
use crate::machines::names::Names;
use crate::machines::samples::Minutes;
use crate::machines::span::judge;
use crate::report::Report;
use crate::report::machines::is_node;
use crate::source::timestamp;

/// Metrics from so long before the job's first iteration on are judged, milliseconds: a machine may fall before its ranks do.
const BEFORE: i64 = 300_000;
/// Least time that is judged, milliseconds: what a call looks at.
const LEAST: i64 = 900_000;

/// Puts what hardware metrics say beside a report, over the time of the job. Without metrics of that time or of the job's nodes
/// it says so, and the report is as it was.
///
/// # Errors
/// Files that can't be read.
pub(in crate::cli) fn beside(report: Report, files: &[PathBuf]) -> Result<Report, MachinesError> {
    let window = &report.summary.window;
    let moment = |time: &Option<String>| Some(timestamp::parse(time.as_deref()?)?.div_euclid(1000));
    let (Some(first), Some(last)) = (moment(&window.first_time), moment(&window.last_time)) else {
        return Ok(report.without_machines("the job's rows have no times to find the same time in the metrics by"));
    };
    let names = Names::built_in();
    let minutes = Minutes::between((first - BEFORE).min(last - LEAST), last);
    let job = Some(report.summary.job.as_str()).filter(|job| !job.is_empty());
    let task = match read(files, job, minutes, &names) {
        Ok(task) => task,
        Err(MachinesError::NoSamples(reason)) => {
            let (from, to) = (timestamp::format(first * 1000), timestamp::format(last * 1000));
            return Ok(report.without_machines(&format!("{reason}; the job ran from {from} to {to}")));
        }
        Err(error) => return Err(error),
    };
    let nodes = report.nodes();
    let is_of_job = |machine: &str| nodes.iter().any(|node| is_node(machine, node));
    let known = task.nodes.iter().filter(|machine| is_of_job(machine)).count();
    if known == 0 {
        let reason = format!(
            "no machine of the metrics ({}, ...) is a node of the job ({}, ...)",
            task.nodes.first().map_or("none", String::as_str),
            nodes.first().copied().unwrap_or("none")
        );
        return Ok(report.without_machines(&reason));
    }
    let of_others = task.nodes.len() - known;
    let task = task.of_machines(&is_of_job);
    let span = judge(&task, &Models::shipped()?, &names, Settings::default())?;
    Ok(report.with_machines(span, of_others))
}

//! CSV, long or wide.

use std::path::Path;

use super::table::{Layout, LongRows, layout, metric_of_file, time_ms};
use crate::machines::error::MachinesError;
use crate::machines::samples::Collector;

/// Reads a file.
///
/// # Errors
/// A file that can't be read, rows of differing length, columns that say nothing.
pub fn read(path: &Path, collector: &mut Collector) -> Result<(), MachinesError> {
    let failed = |error: csv::Error| MachinesError::content(path, error.to_string());
    let file = std::fs::File::open(path).map_err(MachinesError::read(path))?;
    let mut reader = csv::Reader::from_reader(std::io::BufReader::new(file));
    let names: Vec<String> = reader
        .headers()
        .map_err(failed)?
        .iter()
        .map(|name| name.trim().to_owned())
        .collect();
    let layout = layout(path, &names)?;
    let mut record = csv::StringRecord::new();
    match layout {
        Layout::Long {
            time,
            job,
            node,
            metric,
            value,
        } => {
            let mut rows = LongRows::new(collector);
            while reader.read_record(&mut record).map_err(failed)? {
                rows.add(
                    time_ms(&record[time]),
                    job.map_or(Some(""), |place| Some(&record[place])),
                    Some(&record[node]),
                    Some(&record[metric]),
                    record[value].trim().parse().ok(),
                );
            }
        }
        Layout::Wide { time, nodes } => {
            collector.wants_job("");
            let metric = collector.metric(&metric_of_file(path));
            let series: Vec<u32> = nodes
                .iter()
                .map(|&place| {
                    let node = collector.node(&names[place]);
                    collector.series(metric, node)
                })
                .collect();
            while reader.read_record(&mut record).map_err(failed)? {
                let Some(time) = time_ms(&record[time]) else {
                    collector.unreadable();
                    continue;
                };
                for (&place, &series) in nodes.iter().zip(&series) {
                    match record[place].trim() {
                        "" => {} // no sample of this machine at this moment
                        text => match text.parse() {
                            Ok(value) => collector.push(series, time, value),
                            Err(_) => collector.unreadable(),
                        },
                    }
                }
            }
        }
    }
    Ok(())
}

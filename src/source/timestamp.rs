//! Points in time as the table and the command line write them: microseconds since 1970-01-01 UTC.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

/// Microseconds since 1970-01-01T00:00:00Z.
pub type Micros = i64;

/// Largest magnitude that is read as whole seconds; above it a number is milli-, micro- or nanoseconds.
/// 1e11 seconds are the year 5138, 1e11 milliseconds the year 1973: no training job lies in both readings.
const SECONDS_LIMIT: f64 = 1e11;

/// Reads RFC 3339, `YYYY-MM-DD[ T]HH:MM:SS[.fraction]` (UTC, also as `usual` forms), `YYYY-MM-DD` (midnight UTC) or epoch seconds.
///
/// `None` when the text is none of these.
#[must_use]
pub fn parse(text: &str) -> Option<Micros> {
    let text = text.trim();
    plain(text).or_else(|| plain(&usual(text)))
}

/// The forms that DuckDB, pandas and loggers write, in that of a table: ` UTC`, `+08`, `,123`, `2025/04/28`.
fn usual(text: &str) -> String {
    let text = text
        .strip_suffix(" UTC")
        .or_else(|| text.strip_suffix('Z'))
        .unwrap_or(text);
    let mut usual = text.replace(',', ".").replace('/', "-");
    let zone = usual.len().checked_sub(3).and_then(|at| usual.get(at..));
    let is_zone = zone.is_some_and(|zone| {
        zone.starts_with(['+', '-']) && zone[1..].bytes().all(|byte| byte.is_ascii_digit()) && usual.contains(':')
    });
    if is_zone {
        usual.push_str(":00");
    }
    usual
}

fn plain(text: &str) -> Option<Micros> {
    if let Ok(number) = text.parse::<f64>() {
        return from_epoch(number);
    }
    if let Ok(zoned) = DateTime::parse_from_rfc3339(text) {
        return Some(zoned.timestamp_micros());
    }
    for format in [
        "%Y-%m-%d %H:%M:%S%.f%:z",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M:%S%.f",
    ] {
        if let Ok(zoned) = DateTime::parse_from_str(text, format) {
            return Some(zoned.timestamp_micros());
        }
        if let Ok(utc) = NaiveDateTime::parse_from_str(text, format) {
            return Some(utc.and_utc().timestamp_micros());
        }
    }
    let midnight = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0)?;
    Some(midnight.and_utc().timestamp_micros())
}

/// Reads a number as seconds, milli-, micro- or nanoseconds since the epoch, by its magnitude.
#[must_use]
pub fn from_epoch(number: f64) -> Option<Micros> {
    let factor = match number.abs() {
        size if size < SECONDS_LIMIT => 1e6,
        size if size < SECONDS_LIMIT * 1e3 => 1e3,
        size if size < SECONDS_LIMIT * 1e6 => 1.0,
        size if size < SECONDS_LIMIT * 1e9 => 1e-3,
        _ => return None,
    };
    let micros = (number * factor).round();
    micros.is_finite().then_some(micros as Micros)
}

/// Writes a point in time as `YYYY-MM-DDTHH:MM:SSZ`, with the fraction only when there is one.
#[must_use]
pub fn format(micros: Micros) -> String {
    match DateTime::from_timestamp_micros(micros) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string(),
        None => format!("{micros} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_form_is_the_same_moment() {
        let moment = 1_772_352_000_000_000;
        for text in [
            "2026-03-01T08:00:00Z",
            "2026-03-01T09:00:00+01:00",
            "2026-03-01 08:00:00",
            "2026-03-01 08:00:00+00:00",
            "2026-03-01T08:00:00.000",
            "2026-03-01 08:00:00+00",
            "2026-03-01 16:00:00+08",
            "2026-03-01 08:00:00 UTC",
            "2026-03-01 08:00:00Z",
            "2026-03-01 08:00:00,000",
            "2026/03/01 08:00:00",
            "1772352000",
            "1772352000.0",
            "1772352000000",
        ] {
            assert_eq!(parse(text), Some(moment), "{text}");
        }
        assert_eq!(format(moment), "2026-03-01T08:00:00Z");
        assert_eq!(parse("2026-03-01"), Some(moment - 8 * 3_600_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "yesterday", "2026-13-01 00:00:00", "NaN", "inf", "1e300"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

//! Values that several commands take as text: iterations, moments, algorithms.

use super::exit::ArgumentError;
use crate::algos::{Algorithm, registry};
use crate::job::IterationRange;
use crate::source::{Micros, timestamp};

/// The iterations that a text such as `10-20` asks for; all without one.
///
/// # Errors
/// A text that is no range.
pub(super) fn iterations(text: &Option<String>) -> Result<IterationRange, ArgumentError> {
    match text {
        None => Ok(IterationRange::default()),
        Some(text) => text
            .parse()
            .map_err(|error| ArgumentError::new("--iterations", format!("{error}"))),
    }
}

/// The moment that a text names.
///
/// # Errors
/// A text that is no time.
pub(super) fn moment(flag: &'static str, text: &Option<String>) -> Result<Option<Micros>, ArgumentError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let malformed = || {
        ArgumentError::new(
            flag,
            format!("`{text}` is no time; write RFC 3339, YYYY-MM-DD HH:MM:SS (UTC) or epoch seconds"),
        )
    };
    timestamp::parse(text).map(Some).ok_or_else(malformed)
}

/// The word for every algorithm.
const ALL: &str = "all";

/// The algorithms of these names, in the order of the registry.
///
/// # Errors
/// A name that no algorithm has.
pub(super) fn algorithms(names: &[String]) -> Result<Vec<&'static dyn Algorithm>, ArgumentError> {
    let known = registry();
    if let Some(unknown) = names
        .iter()
        .filter(|name| *name != ALL)
        .find(|name| !known.iter().any(|algorithm| algorithm.name() == name.as_str()))
    {
        let names: Vec<&str> = known.iter().map(|algorithm| algorithm.name()).collect();
        let reason = format!("`{unknown}` is unknown; there are all, {}", names.join(", "));
        return Err(ArgumentError::new("--algorithm", reason));
    }
    let asked = |algorithm: &&&'static dyn Algorithm| names.iter().any(|name| name == ALL || name == algorithm.name());
    Ok(known.iter().filter(asked).copied().collect())
}

//! Standard output, with its errors.

use std::io::Write;

use crate::report::WriteError;

/// Prints text as it is.
///
/// # Errors
/// [`WriteError::Stdout`].
pub fn print(text: &str) -> Result<(), WriteError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(WriteError::Stdout)
}

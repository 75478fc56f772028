//! Standard output and standard error, with their errors.

use std::io::Write;

use crate::contract::printable::on_one_line;
use crate::report::WriteError;

/// Prints text as it is. A reader that went away has seen enough: the run goes on to its exit code.
///
/// # Errors
/// [`WriteError::Stdout`].
pub fn print(text: &str) -> Result<(), WriteError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(WriteError::Stdout(error)),
        _ => Ok(()),
    }
}

/// Prints a line on standard error, one line whatever names it repeats; where even that fails there is nobody left to tell.
pub fn tell(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", on_one_line(&line.to_string()));
}

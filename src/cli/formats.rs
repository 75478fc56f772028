//! `formats`: what can be read, and what each form can tell.

use std::fmt::Write as _;

use clap::Args;

use super::exit::Exit;
use super::stdout::print;
use crate::source::formats::FORMATS;

/// Arguments of `formats`.
#[derive(Debug, Args)]
pub struct FormatsArgs {}

/// Runs `formats`.
///
/// # Errors
/// Standard output that can't be written.
pub fn run(_: &FormatsArgs) -> anyhow::Result<Exit> {
    let mut out = String::new();
    for format in &FORMATS {
        // Writing to a string can't fail.
        let _ = writeln!(
            out,
            "{}\n  known by: {}\n  tells: {}",
            format.name, format.known_by, format.tells
        );
    }
    print(&out)?;
    Ok(Exit::Success)
}

//! The `mt-detector` program; see the library for what it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    mt_detector::cli::main()
}

//! `completions` and `man`: made from the definition of the arguments, so that they can't lie.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, ValueEnum as _};
use clap_complete::Shell;

use super::Cli;
use super::exit::Exit;
use super::stdout::print;
use crate::building::replace_file;
use crate::report::WriteError;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for the program and one for each command into this folder, with completions of every shell
    /// [default: the program's page to standard output]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the completions of a shell.
///
/// # Errors
/// Standard output that can't be written.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    print(&String::from_utf8_lossy(&completions_of(args.shell)))?;
    Ok(Exit::Success)
}

fn completions_of(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mt-detector", &mut script);
    script
}

/// Prints or writes man pages.
///
/// # Errors
/// Pages that can't be written.
pub fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    let program = Cli::command();
    let Some(folder) = &args.out else {
        print(&String::from_utf8_lossy(&page_of(program, "mt-detector")?))?;
        return Ok(Exit::Success);
    };
    std::fs::create_dir_all(folder).map_err(WriteError::io(folder))?;
    for command in program.get_subcommands() {
        let name = format!("mt-detector-{}", command.get_name());
        // The parser wants names that live as long as the program.
        let command = command
            .clone()
            .name(&*name.clone().leak())
            .display_name(&*name.clone().leak())
            .version(env!("CARGO_PKG_VERSION"));
        put(folder, &format!("{name}.1"), &page_of(command, &name)?)?;
    }
    put(folder, "mt-detector.1", &page_of(program, "mt-detector")?)?;
    for shell in Shell::value_variants() {
        let file = clap_complete::Generator::file_name(shell, "mt-detector");
        put(folder, &file, &completions_of(*shell))?;
    }
    Ok(Exit::Success)
}

fn page_of(command: clap::Command, name: &str) -> Result<Vec<u8>, WriteError> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|reason| WriteError::Format {
        what: "a man page",
        reason: format!("{name}: {reason}"),
    })?;
    Ok(page)
}

fn put(folder: &Path, name: &str, content: &[u8]) -> Result<(), WriteError> {
    let file = folder.join(name);
    replace_file(&file, content).map_err(WriteError::io(file))
}

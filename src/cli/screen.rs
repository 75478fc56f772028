//! How much is printed, and whether in colours.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};

use crate::report::{Look, Summary, WriteError, lines_for_scripts, screen, text};

/// Widest screen: longer lines read badly.
const WIDEST: usize = 120;
/// Narrowest.
const NARROWEST: usize = 40;

/// Flags of what is printed.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct ScreenArgs {
    /// Print no more than the lines for scripts: job, status, anomaly ranks and nodes, cause
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print all that summary.txt holds: where the rows come from, thresholds met, every finding
    #[arg(short, long)]
    verbose: bool,
    /// Colours: on a terminal where NO_COLOR is not set (auto), always or never
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

impl ScreenArgs {
    /// Whether nothing but lines for scripts is asked for.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// What the screen looks like here.
    pub(super) fn look(&self) -> Look {
        let terminal = std::io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = match self.color {
            Colour::Auto => terminal && !plain,
            Colour::Always => true,
            Colour::Never => false,
        };
        let width = if terminal {
            columns().map(|columns| columns.clamp(NARROWEST, WIDEST))
        } else {
            None
        };
        Look {
            width: width.unwrap_or(Look::default().width),
            colours,
        }
    }

    /// What is printed of a summary.
    ///
    /// # Errors
    /// A name that JSON can't hold.
    pub(super) fn printed(&self, summary: &Summary) -> Result<String, WriteError> {
        if self.quiet {
            return lines_for_scripts(summary);
        }
        if self.verbose {
            return text(summary, self.look());
        }
        let lines = lines_for_scripts(summary)?;
        let lines = if std::io::stdout().is_terminal() {
            lines.lines().map(|line| shortened(line, self.look().width)).collect()
        } else {
            lines
        };
        Ok(screen(summary, self.look()) + "\n" + &lines)
    }
}

/// A line that would fill a terminal with a thousand ranks is cut there, and says so; pipes and files get all of it.
fn shortened(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return format!("{line}\n");
    }
    let told = "... (-q prints all)";
    let kept: String = line.chars().take(width.saturating_sub(told.len())).collect();
    format!("{kept}{told}\n")
}

/// Columns of the terminal.
fn columns() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns)).filter(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_do_not_fill_a_terminal() {
        assert_eq!(shortened("status: fault", 40), "status: fault\n");
        let line = format!("anomaly_ranks: {:?}", (0..500).collect::<Vec<u32>>());
        let short = shortened(&line, 80);
        assert!(short.chars().count() <= 81 && short.ends_with("all)\n"), "{short}");
    }
}

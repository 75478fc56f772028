//! A sign of life on standard error while the work is long.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner that shows only on a terminal; silent elsewhere.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts with what is being done.
    #[must_use]
    pub fn start(doing: &'static str) -> Self {
        Self::counting(doing, "rows")
    }

    /// Starts with what is being done, and what is counted.
    #[must_use]
    pub fn counting(doing: &'static str, what: &str) -> Self {
        // On anything but a terminal this bar draws nothing.
        let bar = ProgressBar::new_spinner().with_message(doing);
        if let Ok(style) =
            ProgressStyle::with_template(&format!("{{spinner}} {{msg}} {{human_pos}} {what} [{{elapsed}}]"))
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// Reports the rows, or what else is counted, passed so far.
    pub fn rows(&self, rows: u64) {
        self.bar.set_position(rows);
    }

    /// Changes what is being done.
    pub fn now(&self, doing: &'static str) {
        self.bar.set_message(doing);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

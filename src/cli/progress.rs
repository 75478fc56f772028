//! A sign of life on standard error while the work is long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::source::BytesRead;

/// Work that takes longer shows a sign of life.
const LONG: Duration = Duration::from_secs(1);
const BEAT: Duration = Duration::from_millis(200);

/// A spinner that shows only on a terminal; silent elsewhere.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: AtomicBool,
    /// What is shown instead of rows.
    bytes: Option<BytesRead>,
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
        let style = format!("{{spinner}} {{msg}} {{human_pos}} {what} [{{elapsed}}]");
        Self::with_bar(ProgressBar::new_spinner().with_message(doing), &style, None)
    }

    /// Starts with what is being done to so many bytes, of which a reader counts those that it has passed.
    #[must_use]
    pub fn of_bytes(doing: &'static str, total: u64, bytes: BytesRead) -> Self {
        let style = "{spinner} {msg} {wide_bar} {bytes} of {total_bytes} [{elapsed}]";
        Self::with_bar(ProgressBar::new(total).with_message(doing), style, Some(bytes))
    }

    fn with_bar(bar: ProgressBar, style: &str, bytes: Option<BytesRead>) -> Self {
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        // Work that is done within the first beat shows nothing.
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Self {
            bar,
            started: Instant::now(),
            shown: AtomicBool::new(false),
            bytes,
        }
    }

    /// Reports the rows, or what else is counted, passed so far.
    pub fn rows(&self, rows: u64) {
        self.show_when_long();
        self.bar.set_position(self.bytes.as_ref().map_or(rows, BytesRead::get));
    }

    fn show_when_long(&self) {
        if self.started.elapsed() >= LONG && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(BEAT);
        }
    }

    /// Changes what is being done.
    pub fn now(&self, doing: &'static str) {
        self.show_when_long();
        self.bar.set_message(doing);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

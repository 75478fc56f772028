//! Keeps a decoder's panic on a damaged file from taking the program down.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; an error or a panic of it becomes its message.
///
/// Polars' readers are written for sound files and panic on some damaged ones and on column types that were not
/// compiled in. While a decoder runs, the thread's panics are not printed.
pub(crate) fn guarded<T, E: std::fmt::Display>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                loud(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(before);
    match outcome {
        Ok(result) => result.map_err(|error| one_line(&error.to_string())),
        Err(panic) => Err(one_line(&message_of(panic.as_ref()))),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the decoder gave up ({})", text.unwrap_or("no reason given"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_message() {
        let outcome: Result<(), String> = guarded(|| -> Result<(), String> { panic!("page {} is odd", 3) });
        assert_eq!(outcome, Err("the decoder gave up (page 3 is odd)".to_owned()));
        assert_eq!(guarded(|| Err::<(), _>("two\nlines")), Err("two lines".to_owned()));
        assert_eq!(guarded(|| Ok::<_, String>(7)), Ok(7));
    }
}

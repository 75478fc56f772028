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
        Ok(result) => result.map_err(|error| in_plain_words(&error.to_string())),
        Err(panic) => Err(of_panic(panic.as_ref()).to_owned()),
    }
}

/// What to say of a type that the decoders were not built for.
const UNREAD_TYPE: &str = "it has a type that is not read; write it as text, numbers, arrays of numbers or DateTime";

/// An error's words without what only the decoder's own developers can use: features of its build, names of its types.
fn in_plain_words(error: &str) -> String {
    let text = one_line(error);
    let is_hint = |mark: &str| text.contains(mark);
    if ["feature", "dtype-", "not implemented", "unimplemented"]
        .into_iter()
        .any(is_hint)
    {
        return UNREAD_TYPE.to_owned();
    }
    text
}

/// A panic's words are for developers; whether it was for a type or for damage is what a user can use.
fn of_panic(panic: &(dyn Any + Send)) -> &'static str {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let of_type = ["feature", "dtype", "not implemented", "not supported"];
    if text.is_some_and(|text| of_type.iter().any(|mark| text.contains(mark))) {
        UNREAD_TYPE
    } else {
        "the decoder gave up: it is damaged, or of a kind that is not read"
    }
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
        assert!(outcome.is_err_and(|reason| reason.starts_with("the decoder gave up") && !reason.contains("odd")));
        let outcome: Result<(), String> = guarded(|| -> Result<(), String> { panic!("activate dtype-{}", 7) });
        assert_eq!(outcome, Err(UNREAD_TYPE.to_owned()));
        assert_eq!(
            guarded(|| Err::<(), _>("activate `dtype-array` feature")),
            Err(UNREAD_TYPE.to_owned())
        );
        assert_eq!(guarded(|| Err::<(), _>("two\nlines")), Err("two lines".to_owned()));
        assert_eq!(guarded(|| Ok::<_, String>(7)), Ok(7));
    }
}

//! What a server's refusal means: whether asking again helps, and what to do about it.

use std::error::Error as _;

use clickhouse::error::Error as ClientError;

use super::settings::ServerSettings;
use crate::contract::printable::on_one_line;
use crate::source::server_error::PASSING;
pub use crate::source::server_error::{Failure, ServerError};

impl Failure {
    /// What would help.
    fn advice(&self, settings: &ServerSettings) -> String {
        let table = settings.table_name();
        match self {
            Self::Refused { code, .. } => match code {
                516 | 192 | 193 | 194 => "check the user and the password".to_owned(),
                497 => format!("the user needs the right to do this on {table}"),
                164 => "the user is read-only: commands that write need another user".to_owned(),
                60 => "check the names of table and database".to_owned(),
                81 => "check the name of the database".to_owned(),
                16 | 36 | 47 => format!("{table} is not laid out as expected; `schema` prints the layout"),
                158 | 159 | 160 | 241 | 307 | 396 => {
                    "the server's limits end the query: ask for fewer iterations or less time, or have them raised"
                        .to_owned()
                }
                394 => "somebody ended the query on the server".to_owned(),
                code if PASSING.contains(code) => "the server is overloaded or not whole: try later".to_owned(),
                _ => "see the server's log for this code".to_owned(),
            },
            Self::Gateway(_) => "check the address, and the proxy on the way to the server".to_owned(),
            Self::Network(text) if text.contains("CaUsedAsEndEntity") => {
                "the server's certificate signs itself and is marked as an authority, which can't be trusted as a \
                 server's: make it anew with basicConstraints=CA:FALSE and subjectAltName, or sign it by an authority of \
                 your own and name the authority's file"
                    .to_owned()
            }
            Self::Network(text) if text.contains("certificate") => {
                "the server's certificate is not trusted: name the file of its authority".to_owned()
            }
            Self::Network(_) => {
                "check that the server runs and that the address names its HTTP port (8123, https 8443)".to_owned()
            }
            Self::Cut { .. } => {
                "the server or a proxy ends answers early, or replicas differ: look at their logs".to_owned()
            }
            Self::Profile(_) => {
                "the user may not override them: have these settings taken out of its profile, or ask as another user"
                    .to_owned()
            }
            Self::Deadline(_) => "narrow the window, or allow a query more time".to_owned(),
            Self::Text(_) => "find the rows with isValidUTF8 and mend or drop them".to_owned(),
            Self::Damaged(_) | Self::Unreadable(_) => "is this the HTTP port of a ClickHouse server?".to_owned(),
            Self::Layout(_) => "`mt-detector schema` prints the layout".to_owned(),
            Self::Torn(_) => "run the command again".to_owned(),
            Self::Miscopied { .. } => {
                "the job's rows changed meanwhile: drop the copy and replay the job when nobody writes it any more"
                    .to_owned()
            }
            Self::File(_) => "check the place and the space of the file".to_owned(),
            Self::Setup(_) => "see the settings of the connection".to_owned(),
        }
    }

    /// The final error of a piece of work.
    pub(super) fn at(self, settings: &ServerSettings, doing: &'static str, attempts: u32) -> Box<ServerError> {
        let advice = self.advice(settings);
        // It is large, and every result would be as large with it.
        Box::new(ServerError {
            server: settings.url.clone(),
            table: settings.table_name(),
            doing,
            what: self,
            attempts,
            advice,
        })
    }

    /// Reads the client's error; the password is struck from it.
    pub(super) fn of(error: &ClientError, settings: &ServerSettings) -> Self {
        let clean = |text: &str| settings.password.struck_from(&one_line(text));
        match error {
            ClientError::BadResponse(text) => match code_of(text) {
                Some(code) => Self::Refused {
                    code,
                    text: clean(words_of(text)),
                },
                None => Self::Gateway(clean(text)),
            },
            ClientError::Network(_) => Self::Network(clean(&chain(error))),
            // A stream that ends inside of a compressed block.
            ClientError::Decompression(_) | ClientError::NotEnoughData => {
                Self::Network(clean(&format!("the answer broke off ({})", chain(error))))
            }
            ClientError::InvalidUtf8Encoding(error) => Self::Text(error.to_string()),
            other => Self::Unreadable(clean(&chain(other))),
        }
    }
}

/// The code in `Code: 60. DB::Exception: ...` (old servers: `Code: 60, e.displayText() = ...`).
fn code_of(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("Code: ")?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    after[..digits].parse().ok()
}

/// The server's words without the code before and the version behind.
fn words_of(text: &str) -> &str {
    let from = text
        .find("DB::Exception: ")
        .map_or(0, |place| place + "DB::Exception: ".len());
    let words = &text[from..];
    words.split(" (version ").next().unwrap_or(words).trim()
}

/// An error with its causes: the first of them mostly says no more than "client error".
fn chain(error: &ClientError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}

/// Longest text of a server that a message repeats.
const LONGEST: usize = 600;

fn one_line(text: &str) -> String {
    let line = text
        .split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let line = on_one_line(&line);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::{Address, Secret};
    use super::*;

    fn settings() -> ServerSettings {
        let mut settings = ServerSettings::at(Address::parse("http://h:8123").expect("an address"));
        settings.password = Secret::new("hunter2".to_owned());
        settings
    }

    fn failure(text: &str) -> Failure {
        Failure::of(&ClientError::BadResponse(text.to_owned()), &settings())
    }

    #[test]
    fn codes_of_new_and_old_servers_are_read() {
        let new = failure(
            "Code: 60. DB::Exception: Unknown table expression 'x'. (UNKNOWN_TABLE) (version 26.9.2.1 (official build))",
        );
        assert_eq!(
            new.to_string(),
            "code 60: Unknown table expression 'x'. (UNKNOWN_TABLE)"
        );
        let old = failure(
            "Code: 193, e.displayText() = DB::Exception: Wrong password for user bob, e.what() = DB::Exception",
        );
        assert!(matches!(old, Failure::Refused { code: 193, .. }));
        assert!(!old.is_passing() && !new.is_passing());
    }

    #[test]
    fn what_passes_is_told_from_what_stays() {
        for code in [202, 209, 210] {
            assert!(
                failure(&format!("Code: {code}. DB::Exception: busy")).is_passing(),
                "{code}"
            );
        }
        for code in [516, 60, 47, 62, 81, 159, 164, 241, 497] {
            assert!(
                !failure(&format!("Code: {code}. DB::Exception: no")).is_passing(),
                "{code}"
            );
        }
        for text in ["upstream is away", "502 Bad Gateway", "<html>503</html>"] {
            assert!(failure(text).is_passing(), "{text}");
        }
    }

    #[test]
    fn the_password_is_struck_from_foreign_words() {
        let error = failure("Code: 62. DB::Exception: near\n'hunter2'")
            .at(&settings(), "read", 1)
            .to_string();
        assert!(!error.contains("hunter2") && !error.contains('\n'), "{error}");
        assert!(
            error.contains("http://h:8123") && error.contains("megatron_metrics") && error.contains("62"),
            "{error}"
        );
    }
}

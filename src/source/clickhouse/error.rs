//! What a server's refusal means: whether asking again helps, and what to do about it.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use clickhouse::error::Error as ClientError;
use thiserror::Error;

use super::settings::ServerSettings;
use crate::contract::printable::on_one_line;

/// A query, or a connection, that failed for good.
#[derive(Debug, Error)]
#[error("clickhouse {server}, table {table}: failed to {doing}: {what}{tries}; {advice}", tries = Tries(*.attempts))]
pub struct ServerError {
    /// Address, without user and password.
    pub server: String,
    /// Database and table.
    pub table: String,
    /// What was being done: "read the timer rows".
    pub doing: &'static str,
    /// What came back.
    pub what: Failure,
    /// How often it was tried.
    pub attempts: u32,
    /// What would help.
    pub advice: String,
}

struct Tries(u32);

impl fmt::Display for Tries {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 | 1 => Ok(()),
            attempts => write!(out, " (tried {attempts} times)"),
        }
    }
}

/// How one attempt failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// The server refused, with its code.
    #[error("code {code}: {text}")]
    Refused {
        /// ClickHouse's error code.
        code: u32,
        /// The server's words, in one line.
        text: String,
    },
    /// Something between here and the server answered in its place.
    #[error("no answer of a ClickHouse server: {0}")]
    Gateway(String),
    /// No connection, or one that broke.
    #[error("{0}")]
    Network(String),
    /// An answer that ended well and holds less than it should.
    #[error(
        "the answer was cut short: {got} of {counted} rows came, as with `limit` in the user's settings, a proxy that gives up, or \
         rows that go meanwhile"
    )]
    Cut {
        /// Rows that came.
        got: u64,
        /// Rows that the server had counted before.
        counted: u64,
    },
    /// Settings under which the server cuts answers or changes what queries mean, and says nothing.
    #[error("the user's settings have the server answer with less than it is asked for, without a word: {0}")]
    Profile(String),
    /// No complete answer in time.
    #[error("no complete answer within {} s", .0.as_secs_f64())]
    Deadline(Duration),
    /// A name in the table that is not UTF-8.
    #[error("a text is not UTF-8 ({0})")]
    Text(String),
    /// An answer on which the decoder gave up.
    #[error("the answer is damaged: {0}")]
    Damaged(String),
    /// An answer that can't be understood.
    #[error("{0}")]
    Unreadable(String),
    /// A table without the columns of the contract.
    #[error("{0}")]
    Layout(String),
    /// Rows that were written in part.
    #[error("{0}")]
    Torn(&'static str),
    /// A copy of more or fewer rows than there were.
    #[error("{copied} rows were copied of {counted} that the job had at the beginning")]
    Miscopied {
        /// Rows that were copied.
        copied: u64,
        /// Rows that were counted before.
        counted: u64,
    },
    /// A local file that can't be written.
    #[error("{0}")]
    File(String),
    /// Nothing to be sent: an address or certificate that can't be right.
    #[error("{0}")]
    Setup(String),
}

/// Codes of a server that is overloaded, starting, or out of reach of its own peers: the same query may pass later.
/// TOO_MANY_SIMULTANEOUS_QUERIES, NO_FREE_CONNECTION, SOCKET_TIMEOUT, NETWORK_ERROR, TABLE_IS_READ_ONLY (a replica that
/// lost its keeper), ALL_CONNECTION_TRIES_FAILED, NO_ACTIVE_REPLICAS, ALL_REPLICAS_LOST, KEEPER_EXCEPTION,
/// CANNOT_SCHEDULE_TASK, SERVER_OVERLOADED.
const PASSING: [u32; 11] = [202, 203, 209, 210, 242, 279, 254, 415, 999, 439, 745];

impl Failure {
    /// Whether the same query may pass when it is sent again.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { code, .. } => PASSING.contains(code),
            Self::Gateway(_) | Self::Network(_) | Self::Cut { .. } | Self::Damaged(_) => true,
            Self::Profile(_)
            | Self::Deadline(_)
            | Self::Text(_)
            | Self::Unreadable(_)
            | Self::Layout(_)
            | Self::Torn(_)
            | Self::Miscopied { .. }
            | Self::File(_)
            | Self::Setup(_) => false,
        }
    }

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

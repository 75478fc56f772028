//! A server that refused, or that answered with less than it should: how, and what would help.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

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
pub(super) const PASSING: [u32; 11] = [202, 203, 209, 210, 242, 279, 254, 415, 999, 439, 745];

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
}

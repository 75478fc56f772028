//! Queries with deadlines, sent again when they fail in passing, and ended on the server when nobody waits any more.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clickhouse::error::Error as ClientError;
use clickhouse::query::Query;
use clickhouse::{Client, RowOwned, RowRead};
use rand::Rng;
use tokio::runtime::{Handle, Runtime};

use super::connect;
use super::error::{Failure, ServerError};
use super::profile::Overrides;
use super::settings::ServerSettings;
use crate::interrupt::{self, OnInterrupt};
use crate::source::guard::guarded;

/// The first wait before a query is sent again; each further one doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// How long ending a query may take: the program is on its way out.
const KILL_DEADLINE: Duration = Duration::from_secs(2);

/// Told to the user when a query is sent again.
pub type Notice = Box<dyn Fn(&str) + Send + Sync>;

/// A connection to one server.
pub(super) struct Session {
    /// Ends what runs on the server when the program is interrupted; goes before the runtime that it needs.
    _on_interrupt: OnInterrupt,
    pub settings: ServerSettings,
    runtime: Runtime,
    client: Client,
    running: Arc<Running>,
    notice: Notice,
    retried: AtomicU64,
    /// Settings that go along with every query.
    overrides: Mutex<Overrides>,
}

/// The attempts whose queries the server works on.
#[derive(Default)]
struct Running {
    ids: Mutex<BTreeSet<String>>,
}

impl Running {
    fn ids(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One attempt of a piece of work; the ids of its queries begin alike.
pub(super) struct Attempt<'a> {
    session: &'a Session,
    id: String,
    queries: Cell<u32>,
}

impl Attempt<'_> {
    /// A query on the session's table, which it names `{table:Identifier}`.
    pub fn query(&self, sql: &str) -> Query {
        self.client().query(sql).param("table", &self.session.settings.table)
    }

    /// The lines of a list, each of which says how many there are: an answer that ends well may still have been cut.
    /// `ask` makes the query for a statement.
    pub async fn list<T>(
        &self,
        sql: &str,
        ask: impl Fn(&str) -> Query,
        rows: impl Fn(&T) -> u64,
    ) -> Result<Vec<T>, Failure>
    where
        T: RowOwned + RowRead,
    {
        let failure = |error| self.failure(&error);
        let lines: Vec<T> = ask(sql).fetch_all().await.map_err(failure)?;
        let counted = match lines.first() {
            Some(line) => rows(line),
            // Nothing says that nothing is all.
            None => {
                let count = ask(&format!("SELECT count() FROM ({sql})")).fetch_one::<u64>().await;
                count.map_err(failure)?
            }
        };
        let got = lines.len() as u64;
        if got != counted {
            return Err(Failure::Cut { got, counted });
        }
        Ok(lines)
    }

    /// Sends these settings along from now on, instead of those before.
    pub fn override_settings(&self, settings: &Overrides) {
        settings.clone_into(&mut self.session.overrides());
    }

    /// Name of the table.
    pub fn table(&self) -> &str {
        &self.session.settings.table
    }

    /// The client, for inserts.
    pub fn client(&self) -> Client {
        let mut client = self.session.client.clone().with_setting("query_id", self.next_id());
        for (name, value) in self.session.overrides().iter() {
            client = client.with_setting(*name, *value);
        }
        client
    }

    /// An id of its own for each query: a server may still know the last one as running when its answer is all there.
    fn next_id(&self) -> String {
        self.queries.set(self.queries.get() + 1);
        format!("{}-{}", self.id, self.queries.get())
    }

    /// Reads a client's error.
    pub fn failure(&self, error: &ClientError) -> Failure {
        Failure::of(error, &self.session.settings)
    }
}

impl Session {
    /// Sets the connection up; nothing is sent yet.
    ///
    /// # Errors
    /// Authorities that can't be read, or a system that gives no threads.
    pub fn new(settings: ServerSettings, notice: Notice) -> Result<Self, Box<ServerError>> {
        let setup = |failure: Failure| failure.at(&settings, "set up the connection", 1);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| setup(Failure::Setup(format!("no threads: {error}"))))?;
        let client = connect::client(&settings).map_err(setup)?;
        let running = Arc::new(Running::default());
        let ending = (client.clone(), Arc::clone(&running), runtime.handle().clone());
        let on_interrupt = interrupt::on_interrupt(move || end_queries(&ending.0, &ending.1, &ending.2));
        Ok(Self {
            settings,
            runtime,
            client,
            running,
            notice,
            retried: AtomicU64::new(0),
            overrides: Mutex::new(Overrides::new()),
            _on_interrupt: on_interrupt,
        })
    }

    fn overrides(&self) -> MutexGuard<'_, Overrides> {
        self.overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a query was sent again so far.
    pub fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    /// Runs a piece of work until it succeeds, fails for good, or has failed in passing too often.
    ///
    /// Each attempt starts from nothing, so that what a broken answer brought counts for nothing.
    ///
    /// # Errors
    /// The last attempt's failure, with what to do about it.
    pub fn run<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFn(&Attempt<'_>) -> Result<T, Failure>,
    ) -> Result<T, Box<ServerError>> {
        let attempts = self.settings.retries.saturating_add(1);
        let mut number = 1;
        loop {
            let failure = match self.attempt(&work) {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if number == attempts || !failure.is_passing() {
                return Err(failure.at(&self.settings, doing, number));
            }
            let wait = jittered(number);
            (self.notice)(&format!(
                "clickhouse {}: failed to {doing}: {failure}; attempt {} of {attempts} in {:.1} s",
                self.settings.url,
                number + 1,
                wait.as_secs_f64()
            ));
            self.retried.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(wait);
            number += 1;
        }
    }

    fn attempt<T>(&self, work: &impl AsyncFn(&Attempt<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let attempt = Attempt {
            session: self,
            id: format!("mt-detector-{}", uuid::Uuid::new_v4()),
            queries: Cell::new(0),
        };
        self.running.ids().insert(attempt.id.clone());
        let limit = self.settings.query_timeout;
        let run = async {
            match tokio::time::timeout(limit, work(&attempt)).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    // Closing the connection ends a query that writes; one that still computes must be told.
                    let _ = tokio::time::timeout(KILL_DEADLINE, end_query(&self.client, &attempt.id)).await;
                    Err(Failure::Deadline(limit))
                }
            }
        };
        // The client's decoder panics on some damaged answers.
        let outcome = guarded(|| Ok::<_, Failure>(self.runtime.block_on(run)));
        self.running.ids().remove(&attempt.id);
        outcome.unwrap_or_else(|reason| Err(Failure::Damaged(reason)))
    }
}

/// Exponential, between half and one and a half of its nominal length: clients that failed together come back apart.
fn jittered(attempt: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    doubled
        .min(LONGEST_WAIT)
        .mul_f64(rand::thread_rng().gen_range(0.5..1.5))
}

/// Asks the server to end the queries of an attempt. Users without the right to do so are refused, and nothing more can be done.
async fn end_query(client: &Client, id: &str) -> Result<(), ClientError> {
    client
        .query("KILL QUERY WHERE startsWith(query_id, ?) ASYNC")
        .bind(id)
        .execute()
        .await
}

fn end_queries(client: &Client, running: &Running, runtime: &Handle) {
    let ids: Vec<String> = running.ids().iter().cloned().collect();
    runtime.block_on(async {
        let all = async {
            for id in &ids {
                let _ = end_query(client, id).await;
            }
        };
        let _ = tokio::time::timeout(KILL_DEADLINE, all).await;
    });
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::settings::Address;
    use super::*;

    /// A session with an address at which nobody listens; what it tells the user is kept.
    fn session(retries: u32) -> (Session, Arc<Mutex<Vec<String>>>) {
        let address = Address::parse("http://127.0.0.1:9").expect("an address");
        let settings = ServerSettings {
            retries,
            query_timeout: Duration::from_millis(200),
            ..ServerSettings::at(address)
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let notices = Arc::clone(&told);
        let notice: Notice = Box::new(move |text| notices.lock().expect("no panic").push(text.to_owned()));
        (Session::new(settings, notice).expect("a session"), told)
    }

    #[test]
    fn what_fails_in_passing_is_done_again_from_nothing() {
        let (session, told) = session(2);
        let attempts = Cell::new(0);
        let done = session.run("count", async |_| {
            attempts.set(attempts.get() + 1);
            match attempts.get() {
                1 => Err(Failure::Network("gone".to_owned())),
                _ => Ok(attempts.get()),
            }
        });
        assert_eq!((done.expect("the second attempt"), session.retried()), (2, 1));
        let told = told.lock().expect("no panic");
        assert!(
            told.len() == 1 && told[0].contains("failed to count") && told[0].contains("attempt 2 of 3"),
            "{told:?}"
        );
    }

    #[test]
    fn attempts_end_and_what_stays_wrong_is_not_done_again() {
        for (failure, expected) in [
            (Failure::Network("gone".to_owned()), 2_u32),
            (Failure::Layout("no column".to_owned()), 1_u32),
        ] {
            let (session, _) = session(1);
            let attempts = Cell::new(0);
            let failure = Cell::new(Some(failure));
            let outcome = session.run("count", async |_| {
                attempts.set(attempts.get() + 1);
                let failure = failure
                    .take()
                    .unwrap_or_else(|| Failure::Network("gone again".to_owned()));
                Err::<(), _>(failure)
            });
            assert!(outcome.is_err());
            assert_eq!((attempts.get(), session.retried()), (expected, u64::from(expected) - 1));
        }
    }

    #[test]
    fn an_attempt_that_takes_too_long_is_ended_for_good() {
        let (session, _) = session(3);
        let began = Instant::now();
        let outcome = session.run("wait", async |_| {
            std::future::pending::<()>().await;
            Ok(())
        });
        let error = outcome.expect_err("a deadline").to_string();
        assert!(error.contains("wait") && session.retried() == 0, "{error}");
        assert!(began.elapsed() < KILL_DEADLINE + Duration::from_secs(10));
        assert!(session.running.ids().is_empty());
    }

    #[test]
    fn waits_grow_up_to_a_limit_and_are_never_the_same_for_all() {
        for (attempt, nominal) in [(1, FIRST_WAIT), (3, FIRST_WAIT * 4), (40, LONGEST_WAIT)] {
            for _ in 0..50 {
                let wait = jittered(attempt);
                assert!(nominal / 2 <= wait && wait <= nominal * 3 / 2, "{attempt}: {wait:?}");
            }
        }
    }
}

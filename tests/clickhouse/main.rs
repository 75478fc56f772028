//! The program against ClickHouse's engine: same results as from files, every fault, every command.
//!
//! Where Python or the engine's package is missing and can't be installed, each test says so and passes, unless
//! `MT_DETECTOR_REQUIRE` names `clickhouse`: then it fails.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod commands;
mod faults;
mod loads;
mod machines;
mod profiles;
mod reduced;
mod same;
mod server;
mod service;
mod settings;
#[cfg(unix)]
mod signals;
mod sweeps;

use std::process::Command;

use common::{Ran, Workdir};
use server::Database;

impl Workdir {
    /// A command with nothing of the developer's own settings.
    fn bare_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        for name in [
            "CLICKHOUSE_URL",
            "CLICKHOUSE_USER",
            "CLICKHOUSE_PASSWORD",
            "CLICKHOUSE_DATABASE",
        ] {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", self.path("no-config"));
        command
    }

    /// A run with nothing of the developer's own settings but these.
    fn run_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Ran {
        let mut command = self.bare_command(args);
        command.envs(environment.iter().copied());
        common::ran(&mut command)
    }

    /// A run on a database.
    fn run_on(&self, database: &Database, args: &[&str]) -> Ran {
        let url = [
            ("CLICKHOUSE_URL", database.server.url.as_str()),
            ("CLICKHOUSE_DATABASE", database.name),
        ];
        self.run_with(args, &url)
    }
}

/// A job of 16 ranks in which rank 5 is slow, as the body of an insert into the table of `schema`.
fn insert_slow_rank(job: &str, iterations: u32) -> String {
    format!(
        "INSERT INTO megatron_metrics FORMAT JSONEachRow\n{}",
        common::job(job, "forward-compute", 16, iterations, |rank, _| {
            if rank == 5 { 1.5 } else { 1.0 + f64::from(rank) / 1000.0 }
        })
    )
}

impl Database {
    /// Makes the table.
    fn with_table(self) -> Self {
        let outcome = Workdir::new().run_with(&["schema"], &[]).succeeded();
        self.sql(outcome.stdout.trim().trim_end_matches(';'));
        self
    }

    /// Makes the table with one job in it, in which rank 5 is slow.
    fn with_slow_rank(self) -> Self {
        let database = self.with_table();
        database.sql(&insert_slow_rank("job", 30));
        database
    }
}

//! The layout of the table: one server, or a replicated table on every shard with a distributed one before them.

use super::error::Failure;

/// Where the table is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// One server.
    Single,
    /// Every server of a cluster: `<table>_local`, replicated, and `<table>` before them.
    Cluster(String),
}

/// The columns. Times are stored to the microsecond, which costs nothing where they are whole seconds; words repeat, so
/// that a dictionary makes them a byte or two.
const COLUMNS: &str = "\
    timestamp     DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    job           LowCardinality(String),
    metric_name   LowCardinality(String),
    subname       LowCardinality(String),
    rank          Int32 CODEC(Delta, ZSTD(1)),
    iteration     Int64 CODEC(Delta, ZSTD(1)),
    node          LowCardinality(String),
    cluster       LowCardinality(String),
    rerun_uuid    LowCardinality(String),
    metric_values Array(Float64) CODEC(ZSTD(1)),
    attributes    String DEFAULT '{}' CODEC(ZSTD(1)),
    INDEX iterations iteration TYPE minmax GRANULARITY 1";

/// One job's rows of one kind lie together, in the order of time; a month is dropped as a whole.
const ORDER: &str = "PARTITION BY toYYYYMM(timestamp)\nORDER BY (job, metric_name, timestamp, subname, rank)";

/// The statements that make the table, in their order.
#[must_use]
pub fn statements(database: Option<&str>, table: &str, place: &Placement) -> Vec<String> {
    let name = |table: &str| match database {
        Some(database) => format!("{}.{}", quoted(database), quoted(table)),
        None => quoted(table),
    };
    match place {
        Placement::Single => vec![format!(
            "CREATE TABLE IF NOT EXISTS {}\n(\n{COLUMNS}\n)\nENGINE = MergeTree\n{ORDER}",
            name(table)
        )],
        Placement::Cluster(cluster) => {
            let local = format!("{table}_local");
            let cluster = quoted(cluster);
            let behind = database.map_or_else(|| "currentDatabase()".to_owned(), text);
            vec![
                // {uuid}, {shard} and {replica} are filled in by each server.
                format!(
                    "CREATE TABLE IF NOT EXISTS {} ON CLUSTER {cluster}\n(\n{COLUMNS}\n)\nENGINE = \
                     ReplicatedMergeTree('/clickhouse/tables/{{uuid}}/{{shard}}', '{{replica}}')\n{ORDER}",
                    name(&local)
                ),
                // A job lies on one shard, so that its rows are sorted and summed up in one place.
                format!(
                    "CREATE TABLE IF NOT EXISTS {} ON CLUSTER {cluster} AS {}\nENGINE = \
                     Distributed({cluster}, {behind}, {}, cityHash64(job))",
                    name(table),
                    name(&local),
                    text(&local)
                ),
            ]
        }
    }
}

/// A name as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl super::Table {
    /// Makes the table where it is missing.
    ///
    /// # Errors
    /// A server that can't be reached or refuses.
    pub fn create(
        settings: super::ServerSettings,
        place: &Placement,
        notice: super::Notice,
    ) -> Result<(), crate::source::SourceError> {
        let session = super::Session::new(settings, notice)?;
        for statement in statements(None, &session.settings.table, place) {
            session.run("make the table", async |attempt| {
                let made = attempt.client().query_raw(&statement).execute().await;
                made.map_err(|error| -> Failure { attempt.failure(&error) })
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        let single = statements(Some("a`b"), "t", &Placement::Single);
        assert!(single[0].contains("`a\\`b`.`t`"), "{single:?}");
        let cluster = statements(None, "t", &Placement::Cluster("main".to_owned()));
        assert!(cluster[0].contains("`t_local` ON CLUSTER `main`"), "{cluster:?}");
        assert!(cluster[1].contains("Distributed(`main`, currentDatabase(), 't_local', cityHash64(job))"));
    }
}

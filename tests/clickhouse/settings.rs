//! Where the settings come from, and that a password shows nowhere.

use crate::common::Workdir;
use crate::server::database;

#[test]
fn flags_come_before_the_environment_and_that_before_the_file() {
    let Some(database) = database("layers") else { return };
    let database = database.with_slow_rank();
    let url = database.server.url.as_str();
    let workdir = Workdir::new();
    workdir.file("password", "s3cret\r\nsecond line");
    let config = workdir.file(
        "config.toml",
        format!(
            "[clickhouse]\nurl = \"{url}\"\nuser = \"reader\"\npassword-file = \"password\"\ndatabase = \"layers\"\n\
             table = \"megatron_metrics\"\nretries = 0\nquery-timeout = 30\n"
        ),
    );
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let args: Vec<&str> = ["jobs", "--format", "json"].iter().chain(args).copied().collect();
        workdir.run_with(&args, environment)
    };
    run(&["--config", &config], &[]).succeeded();
    let outcome = run(&["--config", &config], &[("CLICKHOUSE_DATABASE", "elsewhere")]);
    assert!(outcome.stderr.contains("elsewhere.megatron_metrics"), "{outcome:?}");
    run(
        &["--config", &config, "--database", "layers"],
        &[("CLICKHOUSE_DATABASE", "elsewhere")],
    )
    .succeeded();
    let outcome = run(&["--config", &config], &[("CLICKHOUSE_PASSWORD", "wr0ng-one")]);
    assert!(
        outcome.stderr.contains("code 516") && !outcome.stderr.contains("wr0ng-one"),
        "{outcome:?}"
    );
    run(
        &["--config", &config, "--password-file", "password"],
        &[("CLICKHOUSE_PASSWORD", "wr0ng-one")],
    )
    .succeeded();
    // The platform's own folder.
    std::fs::create_dir_all(workdir.path("usual/mt-detector")).expect("a folder");
    std::fs::copy(workdir.path("password"), workdir.path("usual/mt-detector/password")).expect("a copy");
    std::fs::copy(workdir.path(&config), workdir.path("usual/mt-detector/config.toml")).expect("a copy");
    if cfg!(target_os = "linux") {
        let usual = workdir.path("usual").display().to_string();
        run(&[], &[("XDG_CONFIG_HOME", &usual)]).succeeded();
    }
}

#[test]
fn user_and_password_of_the_address_are_used_and_not_shown() {
    let Some(database) = database("address") else { return };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    let address = |password: &str| {
        database
            .server
            .url
            .replace("http://", &format!("http://reader:{password}@"))
    };
    let good = format!("{}/?database=address", address("s3cret"));
    let outcome = workdir
        .run_with(&["analyze", "--clickhouse-url", &good, "--out", "r"], &[])
        .succeeded();
    let bad = workdir.run_with(
        &["analyze", "--no-files", "--clickhouse-url", &address("wr0ng-one")],
        &[],
    );
    assert_eq!(bad.code, Some(4), "{bad:?}");
    let mut all = outcome.stdout + &outcome.stderr + &bad.stderr;
    let hides = |text: &str| {
        !["s3cret", "wr0ng-one", "reader:s"]
            .iter()
            .any(|secret| text.contains(secret))
    };
    for (name, content) in workdir.content("r") {
        let text = String::from_utf8_lossy(&content);
        assert!(hides(&text), "{name}");
        // A page has rules that begin with it.
        if !name.ends_with(".html") {
            all += &text;
        }
    }
    assert!(hides(&all) && !all.contains('@'), "{all}");
    // A password of every sort of letter arrives as it is.
    let writer = [("CLICKHOUSE_USER", "writer"), ("CLICKHOUSE_PASSWORD", "pa'ss wörd")];
    let args = [
        "jobs",
        "--clickhouse-url",
        &database.server.url,
        "--database",
        "address",
    ];
    workdir.run_with(&args, &writer).succeeded();
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let workdir = Workdir::new();
    let misspelt = workdir.file("misspelt.toml", "[clickhouse]\npasword = \"s3cret\"\n");
    let broken = workdir.file("broken.toml", "[clickhouse]\npassword = s3cret\n");
    let slashed = "http://bob:12/s3cret@h:8123";
    let slashed_url = workdir.file("slashed.toml", format!("[clickhouse]\nurl = \"{slashed}\"\n"));
    for (args, words) in [
        (&["--clickhouse-url", "tcp://h:9000"][..], "--clickhouse-url: `tcp`"),
        (&["--clickhouse-url", "nonsense"], "--clickhouse-url"),
        (
            &["--clickhouse-url", "http://h", "--connect-timeout", "0"],
            "--connect-timeout",
        ),
        (
            &["--clickhouse-url", "http://h", "--query-timeout", "nan"],
            "--query-timeout",
        ),
        (
            &["--clickhouse-url", "http://h", "--password-file", "missing"],
            "--password-file: missing",
        ),
        (&["--config", "missing.toml"], "--config: missing.toml"),
        (&["--config", &misspelt], "pasword"),
        (&["--config", &broken], "line 2"),
        (&["--config", &slashed_url], "clickhouse.url: an `@`"),
        (&["--clickhouse-url", slashed], "--clickhouse-url: an `@`"),
        (
            &["file.parquet", "--clickhouse-url", "http://h"],
            "--clickhouse-url: files are read",
        ),
        (&[], "--clickhouse-url"),
    ] {
        let args: Vec<&str> = ["analyze", "--no-files"].iter().chain(args).copied().collect();
        let outcome = workdir.run_with(&args, &[]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(
            outcome.stderr.contains(words) && !outcome.stderr.contains("s3cret"),
            "{words}: {outcome:?}"
        );
    }
}

/// Whatever a file holds in place of a text, no message repeats it.
#[test]
fn no_value_of_the_configuration_shows_in_an_error() {
    let workdir = Workdir::new();
    for key in [
        "password",
        "url",
        "user",
        "password-file",
        "retries",
        "query-timeout",
        "pasword",
    ] {
        for value in [
            "87654321",
            "-87654321",
            "87654321876543218765432187654321",
            "8765432.1",
            "0x87654321",
            "[\"x87654321\"]",
            "{ x = 87654321 }",
            "\"x87654321, expected 87654321\" 1",
            "x87654321",
            "\"x87654321",
            "'x87654321",
            "8765-43-21",
            "2026-01-01T08:07:06Z",
            "true",
        ] {
            for text in [
                format!("[clickhouse]\n{key} = {value}\n"),
                format!("clickhouse.{key} = {value}\n"),
                format!("clickhouse = {value}\n"),
            ] {
                let config = workdir.file("config.toml", &text);
                let outcome = workdir.run_with(&["jobs", "--config", &config], &[]);
                assert_ne!(outcome.code, Some(0), "{text}");
                for part in ["8765", "4321", "08:07", "true", "`2026"] {
                    assert!(!outcome.stderr.contains(part), "{text}: {outcome:?}");
                }
            }
        }
    }
    let config = workdir.file("config.toml", "[clickhouse]\npassword = 87654321\n");
    let outcome = workdir.run_with(&["jobs", "--config", &config], &[]);
    assert!(
        outcome
            .stderr
            .contains("line 2: a value of the wrong kind, expected a string"),
        "{outcome:?}"
    );
}

//! Where the table is: flags first, then the environment, then the configuration file.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use directories::ProjectDirs;
use serde::Deserialize;

use super::exit::ArgumentError;
use super::stdout::tell;
use crate::source::clickhouse::{Address, MACHINE_TABLE, Secret, ServerSettings};

/// Arguments of the connection, as typed.
#[derive(Debug, Args)]
pub struct ClickHouseArgs {
    /// HTTP address of a ClickHouse server to read from instead of files, http://host:8123 or https://host:8443
    /// [env: CLICKHOUSE_URL]
    #[arg(long, value_name = "URL")]
    clickhouse_url: Option<String>,
    /// Database [env: CLICKHOUSE_DATABASE] [default: the user's own]
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Table [default: megatron_metrics]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// User [env: CLICKHOUSE_USER] [default: the server's default user]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File whose first line is the password [env: CLICKHOUSE_PASSWORD, which holds the password itself]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// PEM file with the authorities to trust for https [default: the system's]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Seconds that connecting may take [default: 10]
    #[arg(long, value_name = "SECONDS")]
    connect_timeout: Option<f64>,
    /// Seconds that a query may take [default: 600]
    #[arg(long, value_name = "SECONDS")]
    query_timeout: Option<f64>,
    /// How often a query that failed in passing is sent again [default: 4]
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Configuration file [default: config.toml in the platform's folder, ~/.config/mt-detector on Linux]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Settings for a process of its own.
pub(super) struct HandedOn {
    /// Its flags.
    pub flags: Vec<OsString>,
    /// Variables of its environment, beside those of this process.
    pub environment: Vec<(&'static str, Secret)>,
}

/// The configuration file: every key may be missing, none may be misspelt.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    #[serde(default)]
    clickhouse: Section,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Section {
    url: Option<String>,
    database: Option<String>,
    table: Option<String>,
    user: Option<String>,
    /// In debug prints it would show; the section is never printed.
    password: Option<String>,
    password_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    connect_timeout: Option<f64>,
    query_timeout: Option<f64>,
    retries: Option<u32>,
}

impl ClickHouseArgs {
    /// The first flag that asks for a server.
    pub(super) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--clickhouse-url", self.clickhouse_url.is_some()),
            ("--database", self.database.is_some()),
            ("--table", self.table.is_some()),
            ("--user", self.user.is_some()),
            ("--password-file", self.password_file.is_some()),
            ("--ca-file", self.ca_file.is_some()),
            ("--config", self.config.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// What a process of its own is given, for the same settings. Everybody can read its flags: what the address says
    /// beside the server's place goes by environment, which comes before an address; where the environment says
    /// something already, that counted before too.
    ///
    /// # Errors
    /// An address that is none.
    pub(super) fn handed_on(&self) -> Result<HandedOn, ArgumentError> {
        let mut environment_beside = Vec::new();
        let mut url = None;
        if let Some(typed) = &self.clickhouse_url {
            let address = address("--clickhouse-url", typed)?;
            for (name, value) in [
                ("CLICKHOUSE_USER", address.user.map(Secret::new)),
                ("CLICKHOUSE_PASSWORD", address.password),
                ("CLICKHOUSE_DATABASE", address.database.map(Secret::new)),
            ] {
                if let (Some(value), None) = (value, environment(name)?) {
                    environment_beside.push((name, value));
                }
            }
            url = Some(address.url);
        }
        let text = |flag: &str, value: &Option<String>| value.as_ref().map(|value| format!("{flag}={value}").into());
        let path = |flag: &str, value: &Option<PathBuf>| {
            let mut typed = OsString::from(format!("{flag}="));
            value.as_ref().map(|value| {
                typed.push(value);
                typed
            })
        };
        let number = |flag: &str, value: Option<f64>| value.map(|value| format!("{flag}={value}").into());
        let flags = [
            text("--clickhouse-url", &url),
            text("--database", &self.database),
            text("--table", &self.table),
            text("--user", &self.user),
            path("--password-file", &self.password_file),
            path("--ca-file", &self.ca_file),
            number("--connect-timeout", self.connect_timeout),
            number("--query-timeout", self.query_timeout),
            self.retries.map(|retries| format!("--retries={retries}").into()),
            path("--config", &self.config),
        ];
        Ok(HandedOn {
            flags: flags.into_iter().flatten().collect(),
            environment: environment_beside,
        })
    }

    /// Puts the three layers together; `None` when no layer names a server.
    ///
    /// # Errors
    /// A value that makes no sense, a file that can't be read.
    pub(super) fn settings(&self) -> Result<Option<ServerSettings>, ArgumentError> {
        let (file, folder) = self.config_file()?;
        let (flag, url) = match (&self.clickhouse_url, environment("CLICKHOUSE_URL")?, &file.url) {
            (Some(url), ..) => ("--clickhouse-url", url.clone()),
            (_, Some(url), _) => ("CLICKHOUSE_URL", url),
            (.., Some(url)) => ("clickhouse.url", url.clone()),
            _ => return Ok(None),
        };
        let mut settings = ServerSettings::at(address(flag, &url)?);
        let beside = |path: &PathBuf| folder.join(path);
        let database = first([self.database.clone(), environment("CLICKHOUSE_DATABASE")?]);
        settings.database = first([database, settings.database, file.database]);
        settings.user = first([
            self.user.clone(),
            environment("CLICKHOUSE_USER")?,
            settings.user,
            file.user,
        ]);
        if let Some(table) = first([self.table.clone(), file.table]) {
            settings.table = table;
        }
        if let Some(path) = &self.password_file {
            settings.password = password_of("--password-file", path)?;
        } else if let Some(password) = environment("CLICKHOUSE_PASSWORD")? {
            settings.password = Secret::new(password);
        } else if !settings.password.is_empty() {
            // The address brought it along.
        } else if let Some(path) = &file.password_file {
            settings.password = password_of("clickhouse.password-file", &beside(path))?;
        } else if let Some(password) = file.password {
            settings.password = Secret::new(password);
        }
        settings.ca_file = self.ca_file.clone().or(file.ca_file.as_ref().map(beside));
        if let Some(limit) = self.connect_timeout.or(file.connect_timeout) {
            settings.connect_timeout = seconds("--connect-timeout", limit)?;
        }
        if let Some(limit) = self.query_timeout.or(file.query_timeout) {
            settings.query_timeout = seconds("--query-timeout", limit)?;
        }
        if let Some(retries) = self.retries.or(file.retries) {
            settings.retries = retries;
        }
        Ok(Some(settings))
    }

    /// The same for the table of hardware metrics: `--table` names it, else it has its usual name.
    ///
    /// # Errors
    /// As [`Self::settings`].
    pub(super) fn machine_settings(&self) -> Result<Option<ServerSettings>, ArgumentError> {
        let table = self.table.as_deref().unwrap_or(MACHINE_TABLE).to_owned();
        Ok(self.settings()?.map(|settings| ServerSettings { table, ..settings }))
    }

    /// The section of the configuration file, and the folder that its paths are relative to.
    fn config_file(&self) -> Result<(Section, PathBuf), ArgumentError> {
        let path = match &self.config {
            Some(path) => path.clone(),
            None => match usual_config() {
                Some(path) if path.is_file() => path,
                _ => return Ok((Section::default(), PathBuf::new())),
            },
        };
        let broken = |reason: String| ArgumentError::new("--config", format!("{}: {reason}", path.display()));
        let text = read_bounded(&path, LONGEST_CONFIG).map_err(broken)?;
        // The error's own text repeats the line, its message the value; both may hold a password.
        let file: ConfigFile = toml::from_str(&text).map_err(|error| {
            let line = error
                .span()
                .map_or(0, |span| text[..span.start.min(text.len())].lines().count());
            broken(format!("line {}: {}", line.max(1), wrong_in_config(error.message())))
        })?;
        let section = &file.clickhouse;
        let with_password = section.password.is_some()
            || section.password_file.is_some()
            || section.url.as_ref().is_some_and(|url| url.contains('@'));
        if with_password && is_open_to_all(&path) {
            tell(format_args!(
                "warning: everybody may write {}, which says where a password is sent; take that right away (chmod o-w)",
                path.display()
            ));
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok((file.clickhouse, folder))
    }
}

/// What is wrong with the file, without the value that is wrong. A value's own text stands between "invalid type: " or
/// "invalid value: " and what was expected, which are our own words.
fn wrong_in_config(message: &str) -> String {
    if !message.starts_with("invalid ") || !message.contains(": ") {
        return message.to_owned();
    }
    match message.rsplit_once(", expected ") {
        Some((_, expected)) => format!("a value of the wrong kind, expected {expected}"),
        None => "a value of the wrong kind".to_owned(),
    }
}

fn address(flag: &'static str, url: &str) -> Result<Address, ArgumentError> {
    Address::parse(url).map_err(|error| ArgumentError::new(flag, error.to_string()))
}

fn usual_config() -> Option<PathBuf> {
    ProjectDirs::from("", "", "mt-detector").map(|folders| folders.config_dir().join("config.toml"))
}

fn first<const N: usize>(layers: [Option<String>; N]) -> Option<String> {
    layers.into_iter().flatten().find(|value| !value.is_empty())
}

/// A variable that is set and not empty.
fn environment(name: &'static str) -> Result<Option<String>, ArgumentError> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(ArgumentError::new(name, "it is not UTF-8")),
    }
}

/// Bytes of a file that holds a password.
const LONGEST_PASSWORD: u64 = 64 << 10;
/// Bytes of a configuration file.
const LONGEST_CONFIG: u64 = 1 << 20;

/// A text file that is no longer than it should be: a device would never end.
fn read_bounded(path: &Path, most: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(most + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(error.to_string()),
        Ok(_) if text.len() as u64 > most => {
            Err(format!("it is longer than {} KB: is this the right file?", most >> 10))
        }
        Ok(_) => Ok(text),
    }
}

/// Whether everybody may write the file.
#[cfg(unix)]
fn is_open_to_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o002 != 0)
}

/// Nobody can tell here.
#[cfg(not(unix))]
fn is_open_to_all(_: &Path) -> bool {
    false
}

pub(super) fn password_of(flag: &'static str, path: &Path) -> Result<Secret, ArgumentError> {
    let text = read_bounded(path, LONGEST_PASSWORD)
        .map_err(|reason| ArgumentError::new(flag, format!("{}: {reason}", path.display())))?;
    let line = text.split(['\r', '\n']).next().unwrap_or_default();
    Ok(Secret::new(line.to_owned()))
}

fn seconds(flag: &'static str, limit: f64) -> Result<Duration, ArgumentError> {
    Duration::try_from_secs_f64(limit)
        .ok()
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| ArgumentError::new(flag, format!("{limit} is no number of seconds above 0")))
}

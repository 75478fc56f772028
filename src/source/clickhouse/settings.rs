//! Where the table is, who asks for it, and how long an answer may take.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use url::Url;

/// Name of the table where none is given.
pub const DEFAULT_TABLE: &str = "megatron_metrics";

/// A text that no output, message or debug print shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text in.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to hide.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the secret out of a text that came from elsewhere.
    #[must_use]
    pub(super) fn struck_from(&self, text: &str) -> String {
        // As it is, and as addresses and forms write it.
        let mut forms = vec![self.0.clone()];
        for spared in [&b""[..], b"-._~", b"-._~!$&'()*+,;=:@/?", b"*-._"] {
            for upper in [true, false] {
                forms.push(percent_encoded(&self.0, spared, upper));
            }
        }
        forms.push(forms[forms.len() - 2].replace("%20", "+"));
        forms.retain(|form| !form.is_empty());
        // The longer first: a shorter one may be a part of it.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms
            .iter()
            .fold(text.to_owned(), |text, form| text.replace(form, "***"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "none" } else { "***" })
    }
}

/// A server's address with the user, password and database that its text may carry taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Scheme, host, port and path; no user, no password, no query.
    pub url: String,
    /// The user before the `@`.
    pub user: Option<String>,
    /// The password before the `@`.
    pub password: Option<Secret>,
    /// The database of `?database=`.
    pub database: Option<String>,
}

/// Why a text is no address of a server; it never repeats the text, which may hold a password.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum AddressError {
    /// No URL at all.
    #[error("not a URL like http://host:8123 or https://host:8443 ({0})")]
    Malformed(String),
    /// Another protocol.
    #[error("`{0}` is not spoken here; give the HTTP interface, http://host:8123 or https://host:8443")]
    Scheme(String),
    /// A part of the URL that would have no effect.
    #[error("`{0}` in the URL has no effect; only database= is read there")]
    Query(String),
    /// A password with a letter that ends the part of the URL it belongs to: the rest of it would be taken for a path,
    /// which messages show.
    #[error(
        "an `@` stands behind a `/`, `?` or `#`: write / as %2F, ? as %3F, # as %23 and @ as %40 in user and password"
    )]
    Unescaped,
}

impl Address {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// No URL, a protocol other than HTTP and HTTPS, a query other than `database=`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let mut url = Url::parse(text.trim()).map_err(|error| AddressError::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme(url.scheme().to_owned()));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(AddressError::Malformed("it names no host".to_owned()));
        }
        let rest = [Some(url.path()), url.query(), url.fragment()];
        if rest.into_iter().flatten().any(|part| part.contains('@')) {
            return Err(AddressError::Unescaped);
        }
        let mut database = None;
        for (name, value) in url.query_pairs() {
            match &*name {
                "database" => database = Some(value.into_owned()),
                other => return Err(AddressError::Query(other.to_owned())),
            }
        }
        let user = Some(decoded(url.username())).filter(|user| !user.is_empty());
        let password = url.password().map(|password| Secret::new(decoded(password)));
        // An http URL has a host, and so can have these.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self {
            url: url.to_string().trim_end_matches('/').to_owned(),
            user,
            password,
            database,
        })
    }
}

/// Writes every byte but letters, digits and those `spared` with a percent sign.
fn percent_encoded(text: &str, spared: &[u8], upper: bool) -> String {
    let mut out = String::with_capacity(3 * text.len());
    for byte in text.bytes() {
        match (byte.is_ascii_alphanumeric() || spared.contains(&byte), upper) {
            (true, _) => out.push(char::from(byte)),
            (false, true) => out += &format!("%{byte:02X}"),
            (false, false) => out += &format!("%{byte:02x}"),
        }
    }
    out
}

/// Undoes the percent signs of a URL's user and password.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |place: usize| after.get(place).and_then(|&digit| char::from(digit).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (first, hex(0), hex(1)) {
            bytes.push((16 * high + low) as u8);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Everything that a connection needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Address without user and password.
    pub url: String,
    /// Database; `None` is the user's own default.
    pub database: Option<String>,
    /// Table.
    pub table: String,
    /// User; `None` is the server's default user.
    pub user: Option<String>,
    /// Password.
    pub password: Secret,
    /// PEM file with the certificates of the authorities to trust, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a query may take until its last byte.
    pub query_timeout: Duration,
    /// How often a query that failed in passing is sent again.
    pub retries: u32,
}

impl ServerSettings {
    /// Settings for an address, with every other value at its default.
    #[must_use]
    pub fn at(address: Address) -> Self {
        Self {
            url: address.url,
            database: address.database,
            table: DEFAULT_TABLE.to_owned(),
            user: address.user,
            password: address.password.unwrap_or_default(),
            ca_file: None,
            connect_timeout: Duration::from_secs(10),
            query_timeout: Duration::from_secs(600),
            retries: 4,
        }
    }

    /// The table as messages name it.
    #[must_use]
    pub fn table_name(&self) -> String {
        match &self.database {
            Some(database) => format!("{database}.{}", self.table),
            None => self.table.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_taken_out_of_the_address() {
        let address =
            Address::parse("https://bob:p%40ss%2f@ch.example:8443/proxy/?database=metrics").expect("an address");
        assert_eq!(address.url, "https://ch.example:8443/proxy");
        assert_eq!(address.user.as_deref(), Some("bob"));
        assert_eq!(address.database.as_deref(), Some("metrics"));
        assert!(
            address
                .password
                .as_ref()
                .is_some_and(|password| password.reveal() == "p@ss/")
        );
        assert!(!format!("{address:?}").contains("p@ss"), "{address:?}");
    }

    #[test]
    fn a_password_is_struck_in_every_spelling() {
        let secret = Secret::new("p@ss wörd/1".to_owned());
        for spelling in [
            "p@ss wörd/1",
            "p%40ss%20w%C3%B6rd%2F1",
            "p%40ss%20w%c3%b6rd%2f1",
            "p%40ss+w%C3%B6rd%2F1",
        ] {
            let text = secret.struck_from(&format!("no way to http://bob:{spelling}@h"));
            assert_eq!(text, "no way to http://bob:***@h", "{spelling}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for text in [
            "ch.example",
            "tcp://bob:secret@ch:9000",
            "http://",
            "http://h?user=bob:secret",
            "clickhouse://h",
            "http://bob:12/secret@h:8123",
            "http://bob:12?secret@h:8123",
            "http://bob:12#secret@h:8123",
        ] {
            let error = Address::parse(text).expect_err(text).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}

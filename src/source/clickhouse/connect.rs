//! The HTTP client under the queries: connect deadline, TLS with the system's or given authorities.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clickhouse::Client;
use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::error::Failure;
use super::settings::ServerSettings;

/// A connection that is not used for longer is closed: servers close theirs after three seconds by default.
const IDLE: Duration = Duration::from_secs(2);
/// Finds out about a peer that vanished without a word.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Makes the client; nothing is sent yet.
///
/// # Errors
/// A file of authorities that can't be read or holds none; a system without any.
pub(super) fn client(settings: &ServerSettings) -> Result<Client, Failure> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(settings.connect_timeout));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_nodelay(true);
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls(settings)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .build(https);
    let mut client = Client::with_http_client(http)
        .with_url(&settings.url)
        .with_product_info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    if let Some(database) = &settings.database {
        client = client.with_database(database);
    }
    if let Some(user) = &settings.user {
        client = client.with_user(user);
    }
    if !settings.password.is_empty() {
        client = client.with_password(settings.password.reveal());
    }
    Ok(client)
}

fn tls(settings: &ServerSettings) -> Result<ClientConfig, Failure> {
    let broken = |error: rustls::Error| Failure::Setup(format!("TLS can't be set up: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(broken)?;
    if !settings.url.starts_with("https:") {
        // Never used; reading the system's store would only take time, or fail on a machine without one.
        return Ok(builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth());
    }
    Ok(match &settings.ca_file {
        Some(file) => builder.with_root_certificates(authorities(file)?),
        None => builder.with_native_roots().map_err(|error| {
            Failure::Setup(format!(
                "the system's certificates can't be read ({error}); name a file of authorities"
            ))
        })?,
    }
    .with_no_client_auth())
}

fn authorities(file: &Path) -> Result<RootCertStore, Failure> {
    let shown = file.display();
    let unreadable = |reason: String| Failure::Setup(format!("the file of authorities {shown}: {reason}"));
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("no certificate in it".to_owned()));
    }
    Ok(roots)
}

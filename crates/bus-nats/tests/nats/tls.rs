//! TLS is mandatory or absent, and only the configured authorities are trusted.

use std::path::Path;

use tempfile::TempDir;
use tickpath_tls::authority::{TestAuthority, TestCertificate};

use crate::helpers::{check_accepted, refused};
use crate::nats_server::NatsServer;

/// Host names of the test servers.
const HERE: &[&str] = &["127.0.0.1", "localhost"];

#[test]
fn a_server_with_a_trusted_authority_is_used() {
    let (dir, authority) = authority();
    let server = start(&authority.certify("server", HERE), "");
    let ca = authority.certificate_file();
    let url = format!("{}?tls&ca={}", server.url(), ca.display());
    check_accepted(&url);
    check_accepted(&url.replacen("nats://", "tls://", 1).replacen("?tls&", "?", 1));
    // The first address refuses, and the second one answers.
    let dead = tickpath_bus_api::conformance::free_port();
    check_accepted(&format!("nats://127.0.0.1:{dead},127.0.0.1:{}?tls&ca={}", server.port(), ca.display()));
    let other = TestAuthority::new(dir.path(), "other").certificate_file();
    refused(&format!("{}?tls&ca={}", server.url(), other.display()), &["of no authority that is trusted", "?ca=FILE"]);
    refused(&format!("{}?tls&ca=/nowhere.pem", server.url()), &["/nowhere.pem", "'ca' must be a PEM file"]);
}

#[test]
fn a_certificate_of_another_name_or_time_is_refused() {
    let (_dir, authority) = authority();
    let cases = [
        (authority.certify("elsewhere", &["elsewhere.example"]), "its certificate is not for '127.0.0.1'"),
        (authority.certify_until("expired", HERE, 2020), "its certificate has expired"),
    ];
    for (identity, words) in cases {
        let server = start(&identity, "");
        refused(&format!("{}?tls&ca={}", server.url(), authority.certificate_file().display()), &[words]);
    }
}

#[test]
fn a_client_certificate_is_presented_on_request() {
    let (dir, authority) = authority();
    let ca = authority.certificate_file();
    let verify = format!("ca_file: \"{}\", verify: true", ca.display());
    let server = start(&authority.certify("server", HERE), &verify);
    let url = format!("{}?tls&ca={}", server.url(), ca.display());
    refused(&url, &["cert=FILE&key=FILE"]);
    let client = authority.certify("client", &["client"]);
    check_accepted(&format!("{url}&{}", shown(&client)));
    // Whether the reason arrives before the connection closes is a race.
    let stranger = TestAuthority::new(dir.path(), "stranger").certify("stranger", &["client"]);
    refused(&format!("{url}&{}", shown(&stranger)), &["TLS", "cert=FILE&key=FILE"]);
}

#[test]
fn a_server_without_tls_is_refused_if_the_url_requires_it() {
    let (_dir, authority) = authority();
    let server = NatsServer::start_plain();
    let url = format!("{}?tls&ca={}", server.url(), authority.certificate_file().display());
    refused(&url, &["cannot be used over TLS", "does not use TLS"]);
}

#[test]
fn a_server_that_requires_tls_is_refused_without_it_in_the_url() {
    let (_dir, authority) = authority();
    let server = start(&authority.certify("server", HERE), "");
    refused(&server.url(), &["wants TLS; add ?tls"]);
    refused(&server.url_with("ann:secret"), &["wants TLS; add ?tls"]);
}

fn authority() -> (TempDir, TestAuthority) {
    let dir = tempfile::tempdir().unwrap();
    let authority = TestAuthority::new(dir.path(), "authority");
    (dir, authority)
}

fn start(identity: &TestCertificate, more: &str) -> NatsServer {
    let file = |path: &Path| path.display().to_string();
    let (cert, key) = (file(&identity.cert), file(&identity.key));
    NatsServer::start_by(&format!("tls {{ cert_file: \"{cert}\", key_file: \"{key}\", {more} }}\n"))
}

fn shown(identity: &TestCertificate) -> String {
    format!("cert={}&key={}", identity.cert.display(), identity.key.display())
}

//! The page over TLS: requested under the names of its certificate, with a cookie that no port without TLS gets.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tickpath_oms_web::{Endpoint, PageTlsFiles, serve};
use tickpath_tls::authority::TestAuthority;
use tickpath_tls::{ClientConnection, NEWEST_VERSION, StreamOwned, client_config, server_name};

use crate::port::{TestDirectory, any, config, connect};

#[test]
fn a_port_with_a_certificate_accepts_only_tls() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let authority = TestAuthority::new(folder.path(), "authority");
    let identity = authority.certify("page", &["127.0.0.1", "page.example"]);
    let tls = PageTlsFiles { certificate: identity.cert.clone(), key: identity.key.clone() };
    let endpoint = Endpoint { tls: Some(tls), ..any() };
    let serving = serve(&config("tls", &endpoint, &Arc::<TestDirectory>::default())).expect("any port will do");
    let at = serving.web().expect("it was asked for");
    assert_eq!(serving.web_url(), Some(format!("https://{at}/")));
    let trust = Arc::new(
        client_config(Some(authority.certificate_file().as_path()), None, NEWEST_VERSION).expect("a good file"),
    );
    let ask = |request: &str, body: &str| {
        let name = server_name("127.0.0.1").expect("a good name");
        let tls = ClientConnection::new(trust.clone(), name).expect("a good configuration");
        let mut stream = StreamOwned::new(tls, connect(Ipv4Addr::LOCALHOST, at));
        let length = body.len();
        write!(stream, "{request}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
            .expect("it can be asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers, and ends with a farewell");
        answer
    };
    for (host, status) in [("127.0.0.1", 200), ("page.example", 200), ("desk.example", 200), ("evil.example", 421)] {
        let answer = ask(&format!("GET /page.js HTTP/1.1\r\nHost: {host}\r\n"), "");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
        assert_eq!(answer.ends_with("look();\n"), status == 200, "the whole file comes: {host}");
    }
    let origin = "Origin: https://page.example\r\nContent-Type: application/json\r\n";
    let head = format!("POST /login HTTP/1.1\r\nHost: page.example\r\n{origin}");
    let answer = ask(&head, r#"{"user":"trader","password":"right"}"#);
    let cookie = format!("set-cookie: __Host-tickpath-{}=", at.port());
    assert!(answer.contains(&cookie) && answer.contains("Path=/; Secure"), "{answer}");
    let head = head.replace("https://", "http://");
    assert!(ask(&head, r#"{"user":"trader","password":"right"}"#).starts_with("HTTP/1.1 403 "));
    assert!(!in_clear(at).contains("HTTP/1.1 200"), "no password goes there unencrypted");
}

/// Returns the answer to a request without TLS.
fn in_clear(at: SocketAddr) -> String {
    let mut stream = connect(Ipv4Addr::LOCALHOST, at);
    // Sent in a single write: the first bytes that are not TLS end the connection.
    let request = format!("GET / HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it can be asked");
    let mut answer = Vec::new();
    // The connection may be reset: its answer is not TLS.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

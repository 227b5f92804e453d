//! Requests that do not come from the page: other sites, other names, without a login, without an end.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use tickpath_oms_web::{Endpoint, serve};

use crate::port::{TestDirectory, any, ask, config, log_in, proofs, shown};

#[test]
fn only_the_page_itself_may_change_state() {
    let (serving, _) = shown("origins");
    let at = serving.web().expect("it was asked for");
    let json = "Content-Type: application/json\r\n";
    let login = r#"{"user":"admin","password":"right"}"#;
    let kill = r#"{"scope":"firm","target":"","on":true,"cancel":true}"#;
    let cancel = r#"{"order":"3474042.12"}"#;
    let own = format!("Host: {at}\r\nOrigin: http://{at}\r\n{json}");
    let local = format!("Host: localhost:{}\r\nOrigin: http://localhost:{}\r\n{json}", at.port(), at.port());
    let long = format!(r#"{{"user":"admin","password":"{}"}}"#, "x".repeat(5_000));
    for (path, head, body, status, words) in [
        ("/login", format!("Host: {at}\r\n{json}"), login, 403, "only the page itself"),
        ("/login", format!("Host: {at}\r\nOrigin: null\r\n{json}"), login, 403, "only the page itself"),
        ("/login", format!("Host: {at}\r\nOrigin: http://evil.example\r\n{json}"), login, 403, "only the page itself"),
        ("/login", format!("Host: {at}\r\nOrigin: https://{at}\r\n{json}"), login, 403, "only the page itself"),
        ("/login", format!("{own}Sec-Fetch-Site: cross-site\r\n"), login, 403, "only the page itself"),
        // A host name of an attacker that points here.
        ("/login", format!("Host: evil.example\r\nOrigin: http://evil.example\r\n{json}"), login, 421, "by address"),
        ("/login", format!("Origin: http://{at}\r\n{json}"), login, 421, "by address"),
        // A request that a form of another site could send.
        (
            "/login",
            format!("Host: {at}\r\nOrigin: http://{at}\r\nContent-Type: text/plain\r\n"),
            login,
            415,
            "send JSON",
        ),
        ("/login", own.clone(), "{", 400, "the body is wrong"),
        ("/login", own.clone(), r#"{"user":"admin"}"#, 400, "missing field `password`"),
        ("/login", own.clone(), &long, 400, "too long"),
        ("/login", own.clone(), login, 403, "no OMS answers"),
        ("/login", local, login, 403, "no OMS answers"),
        ("/kill", own.clone(), kill, 401, "log in first"),
        ("/kill", format!("{own}Cookie: tickpath=\r\nX-Tickpath-Token: \r\n"), kill, 401, "log in first"),
        ("/kill", format!("{own}Cookie: tickpath=00; a=b\r\nX-Tickpath-Token: 00\r\n"), kill, 401, "log in first"),
        ("/kill", format!("Host: {at}\r\nOrigin: http://evil.example\r\n{json}"), kill, 403, "only the page itself"),
        ("/cancel", own.clone(), cancel, 401, "log in first"),
        ("/cancel", format!("{own}Cookie: tickpath=00\r\nX-Tickpath-Token: 00\r\n"), cancel, 401, "log in first"),
        ("/cancel", format!("Host: {at}\r\n{json}"), cancel, 403, "only the page itself"),
        (
            "/cancel",
            format!("Host: {at}\r\nOrigin: http://evil.example\r\n{json}"),
            cancel,
            403,
            "only the page itself",
        ),
        ("/cancel", format!("{own}Sec-Fetch-Site: cross-site\r\n"), cancel, 403, "only the page itself"),
        ("/cancel", format!("Host: evil.example\r\nOrigin: http://evil.example\r\n{json}"), cancel, 421, "by address"),
        (
            "/cancel",
            format!("Host: {at}\r\nOrigin: http://{at}\r\nContent-Type: text/plain\r\n"),
            cancel,
            415,
            "send JSON",
        ),
        ("/logout", own.clone(), "{}", 401, "log in first"),
        ("/frame", own.clone(), "{}", 405, "not with this method"),
        ("/nothing", own.clone(), "{}", 404, "the page is at /"),
    ] {
        let answer = ask(at, &format!("POST {path} HTTP/1.1\r\n{head}"), body);
        let is_so = answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(words);
        assert!(is_so, "{path} with {head} was to be {status}, {words}: {answer}");
        assert!(!answer.to_lowercase().contains("access-control-allow"), "no other site may read: {answer}");
    }
}

#[test]
fn a_login_shows_a_stopped_oms_and_forbids_caching_and_framing() {
    let (serving, _) = shown("looks");
    let (at, metrics) = (serving.web().expect("asked for"), serving.metrics().expect("asked for"));
    let (cookie, token) = proofs(&log_in([127, 0, 0, 1].into(), at, "trader", "right"));
    // trader:right
    let basic = "Authorization: Basic dHJhZGVyOnJpZ2h0\r\n";
    for (path, words) in [
        ("/", "<title>OMS</title>"),
        ("/page.css", "--figures"),
        ("/page.js", "\"use strict\""),
        ("/metrics", "tickpath_oms_up 0\n"),
        ("/frame", "\"state\":"),
    ] {
        let heads = format!("{cookie}{token}{basic}");
        let answer = ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n{heads}"), "");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(words), "{path}: {answer}");
        for head in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "default-src 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(answer.contains(head), "{path} has no {head}: {answer}");
        }
        let refused = ask(at, &format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n{heads}"), "");
        assert!(refused.starts_with("HTTP/1.1 421 ") && !refused.contains(words), "{path}: {refused}");
        // HEAD is answered like GET, without the body.
        let head = ask(at, &format!("HEAD {path} HTTP/1.1\r\nHost: {at}\r\n{heads}"), "");
        let length = |answer: &str| answer.lines().find(|line| line.starts_with("content-length: ")).map(str::to_owned);
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{path}: {head}");
        assert!(length(&head).is_some(), "{path}: {head}");
        if path != "/frame" {
            assert_eq!(length(&head), length(&answer), "{path}");
        }
    }
    let mut frame = String::new();
    for _ in 0..600 {
        frame = ask(at, &format!("GET /frame HTTP/1.1\r\nHost: {at}\r\n{cookie}{token}"), "");
        if frame.contains("runs on this host") {
            break;
        }
        tickpath_clock::sleep_ns(20_000_000);
    }
    assert!(frame.contains("runs on this host") && frame.contains("\"admin\":null"), "{frame}");
    assert!(frame.contains("\"user\":\"trader\""), "{frame}");
    // The port of the metrics serves nothing else, and accepts a configured host name.
    let sentence = ask(metrics, &format!("GET /metrics HTTP/1.1\r\nHost: desk.example\r\n{basic}"), "");
    assert!(sentence.starts_with("HTTP/1.1 200 ") && sentence.contains("tickpath_oms_up 0\n"), "{sentence}");
    for path in ["/", "/frame", "/login"] {
        let refused = ask(metrics, &format!("GET {path} HTTP/1.1\r\nHost: {metrics}\r\n{cookie}{token}"), "");
        assert!(refused.starts_with("HTTP/1.1 404 "), "{path}: {refused}");
    }
}

#[test]
fn an_endless_request_blocks_no_other_client() {
    let (serving, _) = shown("slow");
    let at = serving.web().expect("it was asked for");
    let mut slow: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(at).expect("somebody listens")).collect();
    for (place, stream) in slow.iter_mut().enumerate() {
        let part = if place % 2 == 0 { "GET / HT" } else { "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " };
        stream.write_all(part.as_bytes()).expect("it can be asked");
    }
    let answer = ask(at, &format!("GET / HTTP/1.1\r\nHost: {at}\r\n"), "");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset, "it is ended, not kept"),
        }
    }
}

#[test]
fn an_address_in_use_is_an_error() {
    let (serving, oms) = shown("taken");
    let taken = Endpoint { address: serving.web().expect("it was asked for"), tls: None };
    let config = config("taken-too", &taken, &oms);
    let error = serve(&config).err().expect("somebody listens there").to_string();
    assert!(error.contains("cannot listen on 127.0.0.1:") && error.contains("name another address"), "{error}");
}

#[test]
fn a_missing_certificate_is_an_error() {
    let tls = tickpath_oms_web::PageTlsFiles {
        certificate: "/nowhere/certificate.pem".into(),
        key: "/nowhere/key.pem".into(),
    };
    let config = config("no-tls", &Endpoint { tls: Some(tls), ..any() }, &Arc::<TestDirectory>::default());
    let error = serve(&config).err().expect("there is no certificate").to_string();
    assert!(error.starts_with("/nowhere/certificate.pem: ") && error.contains("must be a PEM file"), "{error}");
}

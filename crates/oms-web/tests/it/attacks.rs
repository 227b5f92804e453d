//! Attacks on the port: viewing without a login, acting with a stolen cookie, connecting under another host name.

use crate::port::{ask, log_in, own, proofs, shown};

#[test]
fn only_health_and_page_files_need_no_login() {
    let (serving, _) = shown("stranger");
    let (at, metrics) = (serving.web().expect("asked for"), serving.metrics().expect("asked for"));
    for (place, path) in [(at, "/frame"), (at, "/metrics"), (metrics, "/metrics")] {
        for heads in [
            "",
            "Cookie: tickpath=00\r\nX-Tickpath-Token: 00\r\n",
            // trader:wrong, nobody:right, and no credentials at all.
            "Authorization: Basic dHJhZGVyOndyb25n\r\n",
            "Authorization: Basic bm9ib2R5OnJpZ2h0\r\n",
            "Authorization: Basic ====\r\n",
        ] {
            for method in ["GET", "HEAD"] {
                let answer = ask(place, &format!("{method} {path} HTTP/1.1\r\nHost: {place}\r\n{heads}"), "");
                let is_refused = answer.starts_with("HTTP/1.1 401 ") || answer.starts_with("HTTP/1.1 429 ");
                assert!(is_refused && !answer.contains("tickpath_oms"), "{method} {path} with {heads}: {answer}");
            }
        }
    }
    let asked = ask(metrics, &format!("GET /metrics HTTP/1.1\r\nHost: {metrics}\r\n"), "");
    assert!(asked.contains("www-authenticate: Basic realm="), "{asked}");
    // A request without a login learns only whether the OMS runs; this OMS does not.
    for place in [at, metrics] {
        let health = ask(place, &format!("GET /health HTTP/1.1\r\nHost: {place}\r\n"), "");
        assert!(health.starts_with("HTTP/1.1 503 ") && health.ends_with("the OMS does not run\n"), "{health}");
    }
}

#[test]
fn neither_cookie_nor_token_suffices_alone() {
    let (serving, oms) = shown("halves");
    let at = serving.web().expect("it was asked for");
    let answer = log_in([127, 0, 0, 1].into(), at, "trader", "right");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("HttpOnly; SameSite=Strict"), "{answer}");
    let (cookie, token) = proofs(&answer);
    // A page on another port of the host gets the cookie, so its name has to contain the port.
    assert!(cookie.starts_with(&format!("Cookie: tickpath-{}=", at.port())), "{cookie}");
    let frame = |heads: &str| ask(at, &format!("GET /frame HTTP/1.1\r\nHost: {at}\r\n{heads}"), "");
    let both = frame(&format!("{cookie}{token}"));
    let secret = token.trim_end().rsplit(' ').next().expect("a head has a value").to_owned();
    assert!(both.starts_with("HTTP/1.1 200 ") && !both.contains(&secret), "no answer says the token again: {both}");
    let other = proofs(&log_in([127, 0, 0, 1].into(), at, "trader", "right"));
    for heads in [
        cookie.clone(),
        token.clone(),
        format!("{cookie}X-Tickpath-Token: \r\n"),
        format!("{cookie}X-Tickpath-Token: {}\r\n", &secret[1..]),
        // Halves of two logins do not form a login.
        format!("{cookie}{}", other.1),
        format!("{}{token}", other.0),
    ] {
        assert!(frame(&heads).starts_with("HTTP/1.1 401 "), "{heads}");
        for (path, body) in [
            ("/kill", r#"{"scope":"firm","target":"","on":true,"cancel":true}"#),
            ("/cancel", r#"{"order":"1.1"}"#),
            ("/logout", "{}"),
        ] {
            let answer = ask(at, &format!("POST {path} HTTP/1.1\r\n{}{heads}", own(at)), body);
            assert!(answer.starts_with("HTTP/1.1 401 "), "{path} with {heads}: {answer}");
        }
    }
    // A user without the admin role may only view.
    let kill = format!("POST /kill HTTP/1.1\r\n{}{cookie}{token}", own(at));
    let answer = ask(at, &kill, r#"{"scope":"firm","target":"","on":true,"cancel":true}"#);
    assert!(answer.starts_with("HTTP/1.1 409 ") && answer.contains("'trader' is no admin"), "{answer}");
    // A removed, disabled or changed user has no login any more.
    oms.dismiss("trader");
    assert!(frame(&format!("{cookie}{token}")).starts_with("HTTP/1.1 401 "));
}

#[test]
fn foreign_host_names_are_refused_on_every_path() {
    let (serving, _) = shown("names");
    for (place, path) in [
        (serving.web(), "/"),
        (serving.web(), "/health"),
        (serving.web(), "/nothing"),
        (serving.metrics(), "/metrics"),
        (serving.metrics(), "/health"),
        (serving.metrics(), "/nothing"),
    ] {
        let at = place.expect("it was asked for");
        for host in ["Host: evil.example\r\n", "", "Host: localhost\r\nHost: evil.example\r\n", "Host: \r\n"] {
            for method in ["GET", "HEAD", "POST"] {
                let answer = ask(at, &format!("{method} {path} HTTP/1.1\r\n{host}"), "");
                let is_refused = answer.starts_with("HTTP/1.1 421 ") || answer.starts_with("HTTP/1.1 400 ");
                assert!(is_refused, "{method} {path} of {host}: {answer}");
            }
        }
        for host in [at.to_string(), "localhost".to_owned(), "[::1]:1".to_owned(), "DESK.example:9".to_owned()] {
            let answer = ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n"), "");
            assert!(!answer.starts_with("HTTP/1.1 421 "), "{path} of {host}: {answer}");
        }
    }
}

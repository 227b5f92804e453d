//! The page of a real OMS as attackers at its port see it, and as users with partial rights see it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::{Value, json};

use super::{Shown, get, post};
use crate::desk::Desk;
use crate::logs::{open_descriptors, set_descriptors, until};
use crate::program::tickpath_with;

/// Returns the JSON of a frame.
fn frame(shown: &Shown, heads: &str) -> Value {
    let answer = get(&shown.page, "/frame", heads);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    serde_json::from_str(body).expect("a frame is JSON")
}

#[test]
fn a_stranger_sees_nothing_and_a_user_sees_what_its_session_may_see() {
    let shown = Shown::new();
    let desk = &shown.desk;
    fs::write(desk.path().join("anna.password"), "a good password\n").expect("the folder is ours");
    let ran = desk.tickpath("oms user add --config @/oms.toml --accounts 2 --password-file @/anna.password anna");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    shown.oms.await_words("definitions have changed");
    for (line, words) in [
        ("new BTCUSDT buy 2 61000 --session 1 --id 77 --account 1", "new new"),
        ("new BTCUSDT buy 3 60900 --user anna --id 78 --account 2", "new new"),
    ] {
        let ran = desk.order(line);
        assert!(ran.out.contains(words), "{line}: {}{}", ran.out, ran.err);
    }
    for words in ["kill account 1", "kill account 2"] {
        let ran = desk.tickpath(&format!("oms {words} --config @/oms.toml"));
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    }
    let alone = shown.metrics.trim_end_matches("/metrics");
    for (address, path) in [(shown.page.as_str(), "/frame"), (shown.page.as_str(), "/metrics"), (alone, "/metrics")] {
        let answer = get(address, path, "");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        assert!(!answer.contains("61000") && !answer.contains("tickpath_oms"), "{path}: {answer}");
        let health = get(address, "/health", "");
        assert!(health.starts_with("HTTP/1.1 200 ") && health.ends_with("\r\n\r\nok\n"), "{health}");
    }

    let login = |user: &str, password: &str| {
        let (cookie, token) = shown.log_in(user, password);
        format!("{cookie}{token}")
    };
    let (anna, admin) = (login("anna", "a good password"), login("admin", &desk.password("admin")));
    let mut view = Value::Null;
    until(
        || {
            view = frame(&shown, &admin);
            view["orders"].as_array().is_some_and(|orders| orders.len() == 2)
                && view["kills"].as_array().is_some_and(|kills| kills.len() == 2)
        },
        || "a frame with both orders".to_owned(),
    );
    assert!(view["sessions"].as_array().is_some_and(|sessions| sessions.len() > 2), "an admin sees all: {view}");
    until(
        || {
            view = frame(&shown, &anna);
            view["orders"].as_array().is_some_and(|orders| !orders.is_empty())
                && view["kills"].as_array().is_some_and(|kills| !kills.is_empty())
        },
        || "a frame with an order".to_owned(),
    );
    let all = |list: &str, key: &str| -> Vec<Value> {
        view[list].as_array().expect("a list").iter().map(|row| row[key].clone()).collect()
    };
    assert_eq!(all("orders", "account"), [json!(2)], "{view}");
    assert_eq!(all("positions", "account"), [json!(2)], "{view}");
    assert_eq!(all("sessions", "user"), [json!("anna")], "{view}");
    assert_eq!(all("kills", "target"), [json!("2")], "{view}");
    assert_eq!(view["lines"][0]["open_orders"], json!(1), "{view}");
    assert_eq!((&view["user"], &view["admin"]), (&json!("anna"), &Value::Null));
    assert!(!view["alarms"].to_string().contains("account 1"), "{view}");

    // A disabled user no longer has a page.
    let ran = desk.tickpath("oms user disable --config @/oms.toml anna");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let is_gone = || get(&shown.page, "/frame", &anna).starts_with("HTTP/1.1 401 ");
    until(is_gone, || "the end of a login".to_owned());
}

#[test]
fn a_stolen_cookie_neither_shows_the_token_nor_stops_trading() {
    let shown = Shown::new();
    let (cookie, token) = shown.log_in("admin", &shown.desk.password("admin"));
    let kill = json!({ "scope": "firm", "target": "", "on": true, "cancel": true }).to_string();
    // Credentials as a server on another port of this host gets them, or a process that reads the browser's files.
    for heads in [cookie.clone(), token.clone()] {
        assert!(get(&shown.page, "/frame", &heads).starts_with("HTTP/1.1 401 "), "{heads}");
        let answer = post(&shown.page, "/kill", &heads, &kill);
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    let both = format!("{cookie}{token}");
    let secret = token.trim_end().rsplit(' ').next().expect("a head has a value").to_owned();
    assert!(!get(&shown.page, "/frame", &both).contains(&secret), "the token is told once");
    let answer = post(&shown.page, "/kill", &both, &kill);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let is_stopped = || frame(&shown, &both)["kills"][0]["scope"] == json!("firm");
    until(is_stopped, || "the admin's own kill".to_owned());
}

#[test]
fn the_page_stops_an_instrument_added_by_a_reload() {
    let shown = Shown::new();
    shown.desk.change("instruments.csv", "ETHUSDT,2,SIM,1\n", "ETHUSDT,2,SIM,1\nSOLUSDT,3,SIM,1\n");
    let ran = shown.desk.tickpath("oms reload --config @/oms.toml");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    shown.oms.await_words("definitions have changed");
    let (cookie, token) = shown.log_in("admin", &shown.desk.password("admin"));
    let heads = format!("{cookie}{token}");
    let stop = |name: &str| {
        let body = json!({ "scope": "symbol", "target": name, "on": true, "cancel": false }).to_string();
        let answer = post(&shown.page, "/kill", &heads, &body);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    };
    let says = |words: &str| until(|| frame(&shown, &heads).to_string().contains(words), || words.to_owned());
    stop("SOLUSDT");
    says("trading is stopped for symbol SOLUSDT");
    stop("NOPE");
    says("'NOPE' is no instrument of the OMS");
}

#[test]
fn wrong_passwords_keep_no_admin_out() {
    let shown = Shown::new();
    // Two guesses that are being checked, without an answer yet.
    let guesses: Vec<TcpStream> = ["admin", "trader"]
        .iter()
        .map(|user| {
            let body = json!({ "user": user, "password": "wrong" }).to_string();
            let mut stream = TcpStream::connect(&shown.page).expect("somebody listens");
            let at = &shown.page;
            let heads = format!("Host: {at}\r\nOrigin: http://{at}\r\nContent-Type: application/json\r\n");
            write!(stream, "POST /login HTTP/1.1\r\n{heads}Content-Length: {}\r\n", body.len()).expect("it is open");
            write!(stream, "Connection: close\r\n\r\n{body}").expect("it is open");
            stream
        })
        .collect();
    shown.log_in("admin", &shown.desk.password("admin"));
    for mut guess in guesses {
        let mut answer = String::new();
        guess.read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    // An admin whose sessions all belong to closed pages gets the oldest of them.
    for _ in 0..4 {
        shown.log_in("admin", &shown.desk.password("admin"));
    }
}

#[test]
fn a_page_that_others_can_reach_is_refused_without_tls_or_a_setting() {
    let desk = Desk::new();
    for (key, port) in [("web", 8080), ("metrics", 9464)] {
        let from = format!("#{key} = \"127.0.0.1:{port}\"");
        let to = format!("{key} = \"0.0.0.0:0\"");
        desk.change("oms.toml", &from, &to);
        for line in ["oms --check --config @/oms.toml", "oms --config @/oms.toml"] {
            let ran = desk.tickpath(line);
            let words = format!(": {key}: other hosts can reach it");
            assert!(ran.code == Some(2) && ran.err.contains(&words), "{line}: {:?} {}{}", ran.code, ran.out, ran.err);
            assert!(ran.err.contains("oms.toml:"), "its line is named: {}", ran.err);
        }
        desk.change("oms.toml", &to, &format!("{to}\ninsecure = true"));
        let ran = desk.tickpath("oms --check --config @/oms.toml");
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        desk.change("oms.toml", &format!("{to}\ninsecure = true"), &from);
    }
}

#[test]
fn an_admin_logs_in_to_an_oms_with_tls_and_no_unix_socket() {
    let desk = Desk::new();
    let files = [desk.line("@/key.pem"), desk.line("@/certificate.pem")];
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    openssl.args(["-keyout", &files[0], "-out", &files[1], "-subj", "/CN=oms"]);
    // Neither a name nor an address of this host: clients know the OMS by another name.
    openssl.args(["-addext", "subjectAltName=DNS:desk.example", "-addext", "basicConstraints=critical,CA:FALSE"]);
    let made = openssl.output().expect("there is openssl; install it with: apt-get install openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    desk.change("oms.toml", "#   [tls]\n#   certificate = ", "[tls]\ncertificate = ");
    desk.change("oms.toml", "#   key = ", "key = ");
    desk.change("oms.toml", "unix = \"oms.sock\"", "");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    desk.change("oms.toml", "tcp = \"127.0.0.1:0\"", &format!("tcp = \"{free}\""));
    desk.change("oms.toml", "#web = \"127.0.0.1:8080\"", "web = \"127.0.0.1:0\"");
    let oms = desk.oms();
    let text = oms.err();
    let page = text.split("page at http://").nth(1).and_then(|rest| rest.split_whitespace().next());
    let page = page.unwrap_or_else(|| panic!("no page in {text}")).trim_end_matches('/');
    let body = json!({ "user": "admin", "password": desk.password("admin") }).to_string();
    let answer = post(page, "/login", "", &body);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"admin\":true"), "{answer}");
}

#[test]
fn a_port_without_descriptors_reports_it_once_and_resumes_later() {
    let shown = Shown::new();
    set_descriptors(&shown.oms, open_descriptors(&shown.oms) + 4);
    let mut idle: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(&shown.page).expect("it is in line")).collect();
    let words = "the page takes no connections for now: Too many open files";
    shown.oms.await_words(words);
    assert!(shown.oms.err().contains("LimitNOFILE"), "the remedy: {}", shown.oms.err());
    set_descriptors(&shown.oms, 1024);
    shown.oms.await_words("the page takes connections again");
    let health = get(&shown.page, "/health", "");
    assert!(health.starts_with("HTTP/1.1 200 "), "{health}");
    assert_eq!(shown.oms.err().matches(words).count(), 1, "{}", shown.oms.err());
    // Requests that waited in line are served as well.
    let last = idle.last_mut().expect("there are some");
    let asked = write!(last, "GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", shown.page);
    let mut answer = String::new();
    let answered = asked.and_then(|()| last.read_to_string(&mut answer));
    // The connection may have been closed instead, because it had sent nothing for too long.
    assert!(answered.is_err() || answer.is_empty() || answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn an_order_that_waits_for_a_price_shows_its_trigger() {
    let shown = Shown::new();
    let config = shown.desk.line("@/oms.toml");
    let order =
        ["order", "new", "BTCUSDT", "buy", "1", "61000", "--session", "2", "--id", "7", "--config", config.as_str()];
    let ran = tickpath_with(&[&order[..], &["--when", "BTCUSDT last >= 99000 or ETHUSDT bid <= 1"]].concat());
    assert!(ran.out.contains("armed"), "{}{}", ran.out, ran.err);
    let (cookie, token) = shown.log_in("trader", &shown.desk.password("trader"));
    let heads = format!("{cookie}{token}");
    let mut when = Value::Null;
    until(
        || {
            when = frame(&shown, &heads)["orders"][0]["when"].clone();
            when.is_string()
        },
        || "an order that waits".to_owned(),
    );
    assert_eq!(when, json!("BTCUSDT last >= 99000 or ETHUSDT bid <= 1"));
    let page = get(&shown.page, "/", "");
    assert!(page.contains("<th class=\"text\">when"), "{page}");
}

//! The live page in a real browser, its metrics, and the same in a terminal, for a desk that trades. Needs chromium.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::chromium::Browser;
use crate::desk::Desk;
use crate::logs::{Running, until};

mod attacks;

/// A desk whose OMS serves its page, with the addresses.
struct Shown {
    oms: Running,
    _exchange: Running,
    page: String,
    metrics: String,
    desk: Desk,
}

impl Shown {
    fn new() -> Self {
        Self::of(Desk::new())
    }

    /// Starts a desk whose files a test has changed.
    fn of(desk: Desk) -> Self {
        desk.change("oms.toml", "#web = \"127.0.0.1:8080\"", "web = \"127.0.0.1:0\"");
        desk.change("oms.toml", "#metrics = \"127.0.0.1:9464\"", "metrics = \"127.0.0.1:0\"");
        let (exchange, oms) = (desk.exchange(), desk.oms());
        exchange.await_words("serving the OMS");
        let [page, metrics] = ["page at http://", "metrics at http://"].map(|words| {
            let text = oms.err();
            let at = text.split(words).nth(1).and_then(|rest| rest.split_whitespace().next());
            at.unwrap_or_else(|| panic!("no '{words}' in {text}")).to_owned()
        });
        // The desk's orders need a price.
        until(|| desk.order("new BTCUSDT buy 1 1 --session 3").out.contains("collar"), || "a price".to_owned());
        Self { desk, oms, _exchange: exchange, page: page.trim_end_matches('/').to_owned(), metrics }
    }

    /// Returns the header of Prometheus with the credentials of its user.
    fn credentials(&self) -> String {
        format!("Authorization: Basic {}\r\n", base64(&format!("trader:{}", self.desk.password("trader"))))
    }

    /// Logs in by the page, and returns the headers of the login: its cookie, and its token.
    fn log_in(&self, user: &str, password: &str) -> (String, String) {
        let answer = post(&self.page, "/login", "", &json!({ "user": user, "password": password }).to_string());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let part = |from: &str, to: &str| {
            let found = answer.split_once(from).and_then(|(_, rest)| rest.split_once(to));
            found.unwrap_or_else(|| panic!("no {from} in {answer}")).0.to_owned()
        };
        (
            format!("Cookie: {}\r\n", part("set-cookie: ", ";")),
            format!("X-Tickpath-Token: {}\r\n", part("\"token\":\"", "\"")),
        )
    }
}

#[test]
fn an_admin_sees_orders_on_the_page_stops_trading_and_cancels() {
    let shown = Shown::new();
    let ran = shown.desk.order("new BTCUSDT buy 2 61000 --session 1 --id 77");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let url = format!("http://{}/", shown.page);
    let mut page = Browser::open(shown.desk.path(), &url);
    page.await_truth("document.querySelector('#login') && !document.querySelector('#login').hidden");
    assert_eq!(page.evaluate("document.querySelector('main').hidden"), json!(true), "nobody is logged in");
    log_in(&mut page, "trader", "wrong");
    page.await_truth("document.querySelector('#login .said').innerText.includes('password')");
    log_in(&mut page, "trader", &shown.desk.password("trader"));
    page.await_truth("document.querySelector('#orders tbody')?.innerText.includes('61000')");
    page.await_truth("document.querySelector('#state').innerText == 'running'");
    page.await_truth("document.querySelector('#lines tbody').innerText.match(/SIM\\s+up/)");
    page.await_truth("document.querySelector('#latency tbody').innerText.includes('T1 → T2')");
    page.await_truth("document.querySelector('#positions tbody').innerText.includes('BTCUSDT')");
    page.await_truth("document.querySelector('#denials tbody').innerText.includes('price collar')");
    page.await_truth("document.querySelector('#user').innerText == 'trader'");
    assert_eq!(page.evaluate("document.querySelector('#kill').hidden"), json!(true), "a trader only looks");
    // A reloaded page is still logged in.
    page.call("Page.navigate", &json!({ "url": url }));
    page.await_truth("document.querySelector('#user')?.innerText == 'trader'");

    log_in(&mut page, "admin", "wrong");
    page.await_truth("document.querySelector('#login .said').innerText.includes('password')");
    log_in(&mut page, "admin", &shown.desk.password("admin"));
    page.await_truth("!document.querySelector('#kill').hidden && document.querySelector('#login').hidden");
    assert_eq!(page.evaluate("document.cookie"), json!(""), "no script can read the cookie");

    press(&mut page, "session", "2", "stop");
    page.await_truth("document.querySelector('#alarms').innerText.includes('trading is stopped for session 2')");
    press(&mut page, "session", "2", "go");
    page.await_truth("!document.querySelector('#alarms').innerText.includes('trading is stopped')");
    press(&mut page, "account", "1", "stop");
    page.await_truth("document.querySelector('#orders tbody').innerText.trim() == 'none'");
    page.await_truth("document.querySelector('#alarms').innerText.includes('trading is stopped for account 1')");
    let ran = shown.desk.order("new BTCUSDT buy 1 61000 --session 2");
    assert!(ran.out.contains("kill switch"), "{}{}", ran.out, ran.err);
    press(&mut page, "account", "1", "go");
    page.await_truth("!document.querySelector('#alarms').innerText.includes('trading is stopped')");
    assert_eq!(shown.desk.order("new BTCUSDT buy 1 61000 --session 2").code, Some(0), "it trades again");

    let canceled = "document.querySelector('#orders tbody').innerText.trim() == 'none'";
    page.await_truth("document.querySelectorAll('#orders tbody button').length == 1");
    page.evaluate("document.querySelector('#orders tbody button').click()");
    page.await_truth(canceled);
    page.await_truth("document.querySelector('#orders .said').innerText.startsWith('said: cancel ')");
    for id in 80..83 {
        let ran = shown.desk.order(&format!("new BTCUSDT buy 1 61000 --session 2 --id {id}"));
        assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    }
    page.await_truth("document.querySelectorAll('#orders tbody button').length == 3");
    press(&mut page, "symbol", "ETHUSDT", "cancel");
    page.await_truth("document.querySelector('#kill .said').innerText == 'said: cancel orders, symbol ETHUSDT'");
    assert_eq!(page.evaluate("document.querySelectorAll('#orders tbody button').length"), json!(3), "none is of it");
    press(&mut page, "symbol", "BTCUSDT", "cancel");
    page.await_truth(canceled);
    assert_eq!(page.evaluate("document.querySelector('#alarms').innerText"), json!(""), "nothing was stopped");
    // A request from another page is rejected, with a login or without; and actions are logged.
    let cross = "fetch('/cancel', { method: 'POST', headers: { 'content-type': 'application/json' }, \
                 body: '{\"order\":\"1.1\"}' }).then(answer => { window.cross = answer.status; })";
    page.evaluate(cross);
    page.await_truth("window.cross == 401");
    page.evaluate("ask('/cancel', { order: '1.1' }, document.querySelector('#orders .said'))");
    page.await_truth("document.querySelector('#orders .said').innerText.includes('the OMS refuses to cancel')");

    page.evaluate("document.querySelector('#logout').click()");
    page.await_truth("document.querySelectorAll('#orders tbody button').length == 0");
    page.await_truth("document.querySelector('#kill').hidden && document.querySelector('main').hidden");
    log_in(&mut page, "trader", &shown.desk.password("trader"));
    page.await_truth("!document.querySelector('main').hidden");
    for width in [360, 1400] {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        page.call("Emulation.setDeviceMetricsOverride", &size);
        let wide = page.evaluate("document.documentElement.scrollWidth");
        assert_eq!(wide, json!(width), "nothing is wider than the window");
    }
    let asked = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)");
    for name in asked.as_array().expect("a list") {
        assert!(
            name.as_str().is_some_and(|name| name.starts_with(&url) || name.starts_with("data:")),
            "{name} lies elsewhere"
        );
    }

    drop(shown.oms);
    page.await_truth("document.querySelector('#state').innerText.includes('no answer')");
    let oms = shown.desk.oms();
    assert!(oms.err().contains("page at"), "a new start shows itself again");
}

fn log_in(page: &mut Browser, user: &str, password: &str) {
    page.evaluate("document.querySelector('#show-login').click()");
    page.evaluate(&format!(
        "{{ const form = document.querySelector('#login'); form.elements.user.value = {user:?}; \
         form.elements.password.value = {password:?}; form.requestSubmit(); }}"
    ));
}

fn press(page: &mut Browser, scope: &str, target: &str, button: &str) {
    page.evaluate(&format!(
        "{{ window.confirm = () => true; const form = document.querySelector('#kill'); \
         form.elements.scope.value = {scope:?}; form.elements.target.value = {target:?}; \
         form.requestSubmit(form.querySelector('button[value={button}]')); }}"
    ));
}

#[test]
fn metrics_and_the_terminal_show_the_same_numbers() {
    let shown = Shown::new();
    let ran = shown.desk.order("new BTCUSDT buy 2 61000 --session 1 --id 77");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let (address, path) = shown.metrics.split_once('/').expect("an address and a path");
    let mut text = String::new();
    let words =
        ["tickpath_oms_up 1\n", "tickpath_oms_orders{state=\"working\"} 1\n", "tickpath_oms_venue_up{venue=\"1\"} 1\n"];
    until(
        || {
            text = get(address, &format!("/{path}"), &shown.credentials());
            words.iter().all(|word| text.contains(word))
        },
        || words.concat(),
    );
    assert!(text.contains("version=0.0.4"), "{text}");
    let count = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let requests = count("tickpath_oms_requests_total ").expect("a number");
    assert!(requests >= 2, "{text}");
    assert_eq!(count("tickpath_oms_hop_seconds_count{hop=\"t0_t2\"}"), Some(requests));
    // Before the first price, orders were denied for the lack of a price.
    let denied = text.lines().filter(|line| line.starts_with("tickpath_oms_denials_total{"));
    let denied: u64 = denied.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    assert_eq!(
        (denied, count("tickpath_oms_denials_total{reason=\"price_collar\"}")),
        (requests - 1, Some(1)),
        "{text}"
    );
    let of_page = get(&shown.page, "/metrics", &shown.credentials());
    assert!(of_page.contains("tickpath_oms_orders{state=\"working\"} 1\n"), "{of_page}");

    let top = shown.desk.tickpath("top --once --config @/oms.toml");
    assert_eq!((top.code, top.err.as_str()), (Some(0), ""));
    for words in ["running", "1 open order", "BTCUSDT", "61000", "SIM", "t1_t2", "trader"] {
        assert!(top.out.contains(words), "no '{words}' in\n{}", top.out);
    }
    assert!(top.out.lines().all(|line| line.chars().count() <= 120), "{}", top.out);
    for (scope, whose) in [("session 2", "session 2"), ("firm", "the firm")] {
        let alarm = format!("! trading is stopped for {whose}: only cancels pass");
        for (word, is_on) in [("kill", true), ("unkill", false)] {
            let ran = shown.desk.tickpath(&format!("oms {word} {scope} --config @/oms.toml"));
            assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
            let top = shown.desk.tickpath("top --once --config @/oms.toml");
            assert_eq!(top.out.contains(&alarm), is_on, "{word} {scope}:\n{}", top.out);
        }
    }
    drop(shown.oms);
    let top = shown.desk.tickpath("top --config @/oms.toml");
    assert!(top.out.contains("! the OMS does not run: these are its last figures"), "{}{}", top.out, top.err);
    assert!(top.out.contains("61000"), "the journal is still there: {}", top.out);
    let again = shown.desk.oms();
    let top = shown.desk.tickpath("top --config @/oms.toml");
    assert!(top.out.contains("running") && !top.out.contains("does not run"), "{}", top.out);
    assert_eq!(again.interrupt().code, Some(0));
    let second = shown.desk.tickpath("top --config @/oms.toml");
    assert!(second.out.contains("runs on this host"), "nothing is left of one that stopped: {}", second.out);
}

/// Returns the answer, head and body, to a GET request with these headers.
fn get(address: &str, path: &str, heads: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{heads}"), "")
}

/// Returns the answer to a request of the page itself, with a JSON body.
fn post(address: &str, path: &str, heads: &str, body: &str) -> String {
    let own = format!("Host: {address}\r\nOrigin: http://{address}\r\nContent-Type: application/json\r\n{heads}");
    ask(address, &format!("POST {path} HTTP/1.1\r\n{own}Content-Length: {}\r\n", body.len()), body)
}

fn ask(address: &str, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "{request}Connection: close\r\n\r\n{body}").expect("it can be asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// Encodes text in base64 (RFC 4648, section 4).
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let sum = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let digit = char::from(DIGITS[(sum >> (18 - 6 * place)) as usize & 63]);
            out.push(if place <= three.len() { digit } else { '=' });
        }
    }
    out
}

#[test]
fn top_draws_on_a_terminal_until_a_key_ends_it() {
    let shown = Shown::new();
    let ran = shown.desk.order("new BTCUSDT buy 2 61000 --session 1 --id 77");
    assert!(ran.out.contains("new new"), "{}{}", ran.out, ran.err);
    let top = shown.desk.line("top --config @/oms.toml");
    let command = format!("stty rows 40 cols 120; exec {} {top}", env!("CARGO_BIN_EXE_tickpath"));
    let mut terminal = Command::new("script");
    terminal.args(["-qfec", &command, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = terminal
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a terminal to write to; install it with: apt-get install bsdutils");
    let mut keys = child.stdin.take().expect("it is a pipe");
    let mut out = child.stdout.take().expect("it is a pipe");
    let drawn = Arc::new(Mutex::new(Vec::new()));
    let heard = drawn.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = out.read(&mut bytes) {
            heard.lock().expect("nobody panics with it").extend_from_slice(&bytes[..length]);
        }
    });
    let text = || String::from_utf8_lossy(&drawn.lock().expect("nobody panics with it")).into_owned();
    until(|| text().contains("61000") && text().contains("p99.9"), || format!("a frame, after {}", text()));
    keys.write_all(b"jkq").expect("it reads its keys");
    let mut status = None;
    until(
        || {
            status = child.try_wait().expect("the child is ours");
            status.is_some()
        },
        || "the end".to_owned(),
    );
    assert!(status.is_some_and(|status| status.success()), "{}", text());
}

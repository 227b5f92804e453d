//! Autobahn's cases of the WebSocket protocol: some 250 against our client, and against the server of the simulated
//! exchanges.
//!
//! ```text
//!   suite as a server, a connection for each case <── WebSocketClient, which sends each text back
//!   suite as a client, a connection for each case ──> WebServer, which sends each message back
//! ```

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use serde_json::Value;
use tickpath_clock::sleep_ns;
use tickpath_venue_sim_web::{ConnectionId, WebAnswer, WebRequest, WebSender, WebServer, WebServerConfig, WebService};
use tickpath_web_client::{WebSocketClient, WebSocketConfig, WebSocketEvent, WebSocketSendError};

use crate::other_clients::{clients, prepare_clients};

/// Max seconds of the suite.
const BOUND_S: &str = "300";
/// Pause of a client that has nothing to do, and the number of pauses in a row that a server may cause: a minute.
const PAUSE_NS: u64 = 50_000;
const MAX_PAUSES: u32 = 1_200_000;
/// Max wait of a server's turn in milliseconds.
const TURN_MS: u32 = 10;
/// Number of cases at least, so that the tests notice a suite that leaves most of them out.
const MIN_CASES: u64 = 240;

#[test]
fn the_websocket_client_keeps_the_protocol() {
    let mut suite = Suite::start(&["server"]);
    while let Some(report) = suite.next_report() {
        match report["port"].as_u64() {
            Some(port) => run_cases(port),
            None => check_report(&report),
        }
    }
    suite.end();
}

#[test]
fn the_server_of_the_simulated_exchanges_keeps_the_protocol() {
    let (send_address, address) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let is_stopped = stop.clone();
    let server = thread::spawn(move || {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = WebServerConfig { listen, tls: false, max_connections: 64, max_message_bytes: 16 << 20 };
        let mut server = WebServer::open(&config).expect("a loopback address is free");
        send_address.send(server.address()).expect("the test waits for it");
        while !is_stopped.load(Ordering::Relaxed) {
            server.poll(TURN_MS, &mut EchoService);
        }
    });
    let address = address.recv().expect("the server opens");
    let mut suite = Suite::start(&["client", &format!("ws://{address}")]);
    while let Some(report) = suite.next_report() {
        check_report(&report);
    }
    suite.end();
    stop.store(true, Ordering::Relaxed);
    server.join().expect("the server does not panic");
}

/// A run of the suite, whose lines are reports.
struct Suite {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    reports: usize,
}

impl Suite {
    fn start(words: &[&str]) -> Self {
        prepare_clients();
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", BOUND_S]).arg(clients()).arg("websocket_cases.py").args(words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("there is timeout");
        let lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        Self { child, lines, reports: 0 }
    }

    /// Waits for a report; none at the end.
    fn next_report(&mut self) -> Option<Value> {
        let line = self.lines.next()?.expect("it is text");
        self.reports += 1;
        Some(serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}")))
    }

    /// Waits for the end, and checks that the suite has passed.
    fn end(mut self) {
        let status = self.child.wait().expect("the child is ours");
        assert!(status.success() && self.reports > 0, "the suite has ended with {status}");
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends each message back.
struct EchoService;

impl WebService for EchoService {
    fn http(&mut self, _request: &WebRequest<'_>) -> WebAnswer {
        WebAnswer::status(404, "this server has WebSockets only")
    }

    fn upgrade(&mut self, _id: ConnectionId, _request: &WebRequest<'_>) -> Result<(), WebAnswer> {
        Ok(())
    }

    fn text(&mut self, id: ConnectionId, text: &str, out: &mut WebSender<'_>) {
        out.text(id, text);
    }

    fn binary(&mut self, id: ConnectionId, bytes: &[u8], out: &mut WebSender<'_>) {
        out.binary(id, bytes);
    }

    fn closed(&mut self, _id: ConnectionId) {}

    fn turn(&mut self, _out: &mut WebSender<'_>) -> usize {
        0
    }
}

fn check_report(report: &Value) {
    let failed = report["failed"].as_array().unwrap_or_else(|| panic!("no report: {report}"));
    assert!(failed.is_empty(), "{report:#}");
    assert!(report["cases"].as_u64().is_some_and(|cases| cases >= MIN_CASES), "{report:#}");
}

/// Runs all cases of the suite, as Autobahn's clients do.
fn run_cases(port: u64) {
    let server = format!("ws://127.0.0.1:{port}");
    let count = converse(&format!("{server}/getCaseCount"), false).expect("the suite sends the number of its cases");
    let count: u32 = count.parse().expect("it is a number");
    for case in 1..=count {
        converse(&format!("{server}/runCase?case={case}&agent=tickpath"), true);
    }
    converse(&format!("{server}/updateReports?agent=tickpath"), false);
}

/// Connects, and sends each text back if the server is to get an echo. Returns the last text when the server has ended
/// the connection.
fn converse(url: &str, is_echo: bool) -> Option<String> {
    let mut client = WebSocketClient::new(WebSocketConfig::new(url)).expect("the URL is good");
    let (mut last, mut unsent, mut pauses) = (None, VecDeque::new(), 0);
    client.connect();
    while pauses < MAX_PAUSES {
        let mut texts = Vec::new();
        let polled = client.poll(&mut |event| {
            if let WebSocketEvent::Text(text, _) = event {
                texts.push(String::from_utf8(text.to_vec()).expect("the client checks its texts"));
            }
        });
        last = texts.last().cloned().or(last);
        if is_echo {
            unsent.extend(texts);
        }
        send(&mut client, &mut unsent);
        match polled {
            Ok(0) => {
                pauses += 1;
                sleep_ns(PAUSE_NS);
            }
            Ok(_) => pauses = 0,
            Err(_) => return last,
        }
    }
    panic!("{url} has not ended");
}

/// Sends texts, as far as the socket takes them. A connection that has ended takes none.
fn send(client: &mut WebSocketClient, unsent: &mut VecDeque<String>) {
    while let Some(text) = unsent.front() {
        if matches!(client.send_text(text), Err(WebSocketSendError::Full)) {
            return;
        }
        unsent.pop_front();
    }
}

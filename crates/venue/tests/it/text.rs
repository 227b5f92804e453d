//! The example's line, checked against the contract with a counterpart with its text protocol.

#[path = "../../examples/text.rs"]
#[expect(dead_code, reason = "an example has a main of its own")]
mod example;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use tickpath_market::ExecutionReport;
use tickpath_venue::Line;
use tickpath_venue::conformance::{TestVenue, VenueCapabilities, check};

use example::TextLine;

/// An exchange that takes every request.
struct Counterpart {
    listener: TcpListener,
    stream: Option<TcpStream>,
    received: String,
    ids: Vec<u64>,
    next_request: u64,
    reports: Vec<ExecutionReport>,
}

impl Counterpart {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be");
        let (received, ids, reports) = (String::new(), Vec::new(), Vec::new());
        Self { listener, stream: None, received, ids, next_request: 0, reports }
    }

    fn write(&mut self, line: &str) {
        if let Some(stream) = &mut self.stream {
            // The line fits any socket's buffer.
            let _ = stream.write_all(line.as_bytes());
        }
    }

    fn send_reports_from(&mut self, first: usize) {
        for number in first..self.reports.len() {
            let ExecutionReport { order_id, exec_type, status, .. } = self.reports[number];
            self.write(&format!("REPORT {number} order={} type={exec_type} status={status}\n", order_id.0));
        }
    }

    fn handle_line(&mut self, line: &str) {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields[0] == "LOGON" {
            self.write(&format!("WELCOME {}\n", self.next_request));
            return self.send_reports_from(fields[2].parse().expect("the first report that it lacks"));
        }
        let number: u64 = fields[1].parse().expect("requests are numbered");
        assert!(number >= self.next_request, "request {number} arrived twice");
        self.next_request = number + 1;
        let id = fields[2].strip_prefix("id=").and_then(|id| id.parse().ok());
        self.ids.push(id.expect("a request has an id"));
        self.write(&format!("ACK {}\n", self.next_request));
    }
}

impl TestVenue for Counterpart {
    fn line(&mut self) -> Box<dyn Line> {
        Box::new(TextLine::new(self.listener.local_addr().expect("it listens")))
    }

    fn received_requests(&mut self) -> Vec<u64> {
        if let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).expect("it can be");
            self.stream = Some(stream);
            self.received.clear();
        }
        let mut room = [0; 4096];
        while let Some(Ok(bytes @ 1..)) = self.stream.as_mut().map(|stream| stream.read(&mut room)) {
            self.received.push_str(std::str::from_utf8(&room[..bytes]).expect("it is text"));
        }
        while let Some((line, rest)) = self.received.split_once('\n') {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            self.received = rest;
            self.handle_line(&line);
        }
        self.ids.clone()
    }

    fn send_report(&mut self, report: &ExecutionReport) {
        self.reports.push(*report);
        self.send_reports_from(self.reports.len() - 1);
    }

    fn disconnect(&mut self) {
        self.received_requests();
        self.stream = None;
    }

    fn capabilities(&self) -> VenueCapabilities {
        VenueCapabilities { requests: true, reports: true }
    }
}

#[test]
fn the_line_of_the_example_keeps_the_contract() {
    check(Counterpart::new);
}

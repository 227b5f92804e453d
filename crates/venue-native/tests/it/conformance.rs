//! The suite of the contract, with a counterpart that speaks the protocol's frames: over TCP, over a Unix socket, and
//! as an exchange without memory.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use tempfile::TempDir;
use tickpath_market::{ExecutionReport, Kind, Request};
use tickpath_oms_protocol::{FrameBuffer, write_frame};
use tickpath_venue::Line;
use tickpath_venue::conformance::{TestVenue, VenueCapabilities, check};
use tickpath_venue_native::wire::{HEARTBEAT, LOGON, LineLogon, LineWelcome, MAGIC, VERSION, WELCOME};
use tickpath_venue_native::{LineAddress, TcpLine};
use zerocopy::IntoBytes;

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf, #[expect(dead_code, reason = "it removes the folder")] TempDir),
}

/// An exchange that takes every request.
struct Counterpart {
    listener: Listener,
    remembers: bool,
    stream: Option<(Box<dyn Stream>, RefCell<FrameBuffer>)>,
    is_known: bool,
    ids: Vec<u64>,
    next_request: u64,
    reports: Vec<ExecutionReport>,
}

impl Counterpart {
    fn on(listener: Listener, remembers: bool) -> Self {
        let (ids, reports) = (Vec::new(), Vec::new());
        Self { listener, remembers, stream: None, is_known: false, ids, next_request: 0, reports }
    }

    fn tcp(remembers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be");
        Self::on(Listener::Tcp(listener), remembers)
    }

    fn unix() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("exchange.sock");
        let listener = UnixListener::bind(&path).expect("the folder is ours");
        listener.set_nonblocking(true).expect("it can be");
        Self::on(Listener::Unix(listener, path, folder), true)
    }

    fn write(&mut self, frame: &[u8]) {
        if let Some((stream, _)) = &mut self.stream {
            // The frame fits any socket's buffer.
            let _ = stream.write_all(frame);
        }
    }

    fn send_reports_from(&mut self, first: usize) {
        for number in first..self.reports.len() {
            let mut frame = Vec::new();
            let report = self.reports[number];
            write_frame(&mut frame, Kind::ExecutionReport.code(), number as u64, 1, report.as_bytes());
            self.write(&frame);
        }
    }

    fn accept(&mut self) {
        let stream: Option<Box<dyn Stream>> = match &self.listener {
            Listener::Tcp(listener) => listener.accept().ok().map(|(stream, _)| {
                stream.set_nonblocking(true).expect("it can be");
                Box::new(stream) as Box<dyn Stream>
            }),
            Listener::Unix(listener, ..) => listener.accept().ok().map(|(stream, _)| {
                stream.set_nonblocking(true).expect("it can be");
                Box::new(stream) as Box<dyn Stream>
            }),
        };
        self.stream = stream.map(|stream| (stream, RefCell::default())).or(self.stream.take());
    }

    fn handle_frame(&mut self, kind: u8, number: u64, logon: LineLogon, request: Option<Request>) {
        let mut frame = Vec::new();
        if kind == LOGON {
            assert_eq!((logon.magic, logon.version, logon.journal), (MAGIC, VERSION, 7));
            let known = u8::from(self.remembers);
            let welcome = LineWelcome {
                version: VERSION,
                knows_requests: known,
                knows_reports: known,
                next_request: self.next_request,
                next_report: logon.next_report,
                ..LineWelcome::default()
            };
            self.is_known = true;
            write_frame(&mut frame, WELCOME, 0, 1, welcome.as_bytes());
            self.write(&frame);
            return self.send_reports_from(logon.next_report as usize);
        }
        let Some(request) = request else { return };
        assert!(number >= self.next_request, "request {number} arrived twice");
        self.next_request = number + 1;
        self.ids.push(request.client_order_id().0);
        write_frame(&mut frame, HEARTBEAT, self.next_request, 1, &[]);
        self.write(&frame);
    }
}

impl TestVenue for Counterpart {
    fn line(&mut self) -> Box<dyn Line> {
        let address = match &self.listener {
            Listener::Tcp(listener) => {
                let port = listener.local_addr().expect("it listens").port();
                LineAddress::Tcp { host: "127.0.0.1".to_owned(), port }
            }
            Listener::Unix(_, path, _) => LineAddress::Unix(path.clone()),
        };
        Box::new(TcpLine::new(address, "conformance").expect("this host has a clock"))
    }

    fn received_requests(&mut self) -> Vec<u64> {
        self.accept();
        let mut frames = Vec::new();
        if let Some((stream, inbox)) = &mut self.stream {
            let inbox = inbox.get_mut();
            while let Ok(bytes) = stream.read(inbox.free_space())
                && bytes > 0
            {
                inbox.advance(bytes);
                while let Some(frame) = inbox.next().expect("only frames come") {
                    let request = Request::read(frame.kind, frame.payload).ok();
                    frames.push((frame.kind, frame.sequence, frame.message(), request));
                }
            }
        }
        frames.into_iter().for_each(|(kind, number, logon, request)| self.handle_frame(kind, number, logon, request));
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
        VenueCapabilities { requests: self.remembers, reports: self.remembers }
    }
}

#[test]
fn a_line_keeps_the_contract_over_tcp() {
    check(|| Counterpart::tcp(true));
}

#[test]
fn a_line_keeps_the_contract_over_a_unix_socket() {
    check(Counterpart::unix);
}

#[test]
fn a_line_keeps_the_contract_at_an_exchange_without_state() {
    check(|| Counterpart::tcp(false));
}

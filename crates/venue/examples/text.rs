//! Example of an exchange adapter: a line for a plain text protocol over TCP, one message per line of text.
//!
//! ```text
//!   OMS ──                                              ── exchange
//!     LOGON desk NEXT_REPORT                            name of the line, and the first report that it lacks
//!                           WELCOME NEXT_REQUEST        the exchange has all requests below this number
//!     NEW 7 id=12 symbol=1 account=1 side=1 price=… quantity=…        requests, numbered
//!     CANCEL 8 id=13 order=12
//!                           ACK 9                       it has all requests below this number
//!                           REPORT 4 order=12 request=12 type=0 status=0 …    numbered, from the requested one on
//! ```
//!
//! A real exchange's protocol has more, which goes to the same places: a login's answer and a sequence reset to
//! [`Line::connect`] and the welcome, heartbeats to [`Line::poll`], codes and names to [`write`] and [`read`].
//!
//! `cargo run --example text -- 127.0.0.1:PORT` connects to an exchange with this protocol and prints its events. A
//! program with an OMS puts `LineFactory::new(move || Ok(Box::new(TextLine::new(address))))` of `tickpath-oms-runtime`
//! into its `OmsLineConfig`; configuration files open lines to Tickpath's own exchange only.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_market::{ClientOrderId, ExecId, ExecutionReport, OrderId, Price, Quantity, Request};
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};

/// Max pending output, in bytes.
const MAX_PENDING_BYTES: usize = 64 << 10;

/// A line with a text protocol.
pub struct TextLine {
    address: SocketAddr,
    stream: Option<TcpStream>,
    /// Reason of a failed connect, until it is reported.
    failed: Option<String>,
    is_up: bool,
    /// Received bytes without a whole line yet, and pending output.
    received: Vec<u8>,
    out: Vec<u8>,
    next_report: u64,
}

impl TextLine {
    /// Creates a line that is down.
    pub fn new(address: SocketAddr) -> Self {
        let (received, out) = (Vec::new(), Vec::new());
        Self { address, stream: None, failed: None, is_up: false, received, out, next_report: 0 }
    }

    fn lost(&mut self, why: &str) -> ConnectionLost {
        (self.stream, self.is_up) = (None, false);
        ConnectionLost(format!("{}: {why}", self.address))
    }

    /// Writes the bytes that the socket takes now.
    fn flush(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while !self.out.is_empty() {
            match stream.write(&self.out) {
                Ok(bytes) => drop(self.out.drain(..bytes)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads the available bytes. Returns false if there were none.
    fn read_available(&mut self) -> Result<bool, String> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let mut room = [0; 4096];
        match stream.read(&mut room) {
            Ok(0) => Err("the exchange has closed it".to_owned()),
            Ok(bytes) => {
                self.received.extend_from_slice(&room[..bytes]);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(e) => Err(e.to_string()),
        }
    }

    fn handle_line(&mut self, line: &str, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<(), String> {
        let number =
            |text: Option<&str>| text.and_then(|text| text.parse().ok()).ok_or(format!("'{line}' has no number"));
        let mut fields = line.split(' ');
        match fields.next() {
            Some("WELCOME") if !self.is_up => {
                self.is_up = true;
                let (next_request, next_report) = (Some(number(fields.next())?), Some(self.next_report));
                take(LineEvent::Up { next_request, next_report });
            }
            Some("ACK") => take(LineEvent::Acknowledged(number(fields.next())?)),
            Some("REPORT") => {
                let number = number(fields.next())?;
                let report = read(fields).ok_or(format!("'{line}' is no report"))?;
                // Reports that were passed on already arrive again where the exchange cannot know that.
                if number > self.next_report {
                    return Err(format!("report {number} arrived instead of report {}", self.next_report));
                }
                if number == self.next_report {
                    self.next_report += 1;
                    take(LineEvent::Report { number, stamp: 0, report: &report });
                }
            }
            _ => return Err(format!("'{line}' is no message of this exchange")),
        }
        Ok(())
    }
}

impl Line for TextLine {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn connect(&mut self, resume: &ResumeState) {
        (self.is_up, self.next_report) = (false, resume.next_report);
        self.received.clear();
        self.out = format!("LOGON desk {}\n", resume.next_report).into_bytes();
        // Connecting to a distant exchange would block here: begin it without blocking, as `tickpath-venue-native`
        // does.
        let connected = TcpStream::connect(self.address).and_then(|stream| {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => self.stream = Some(stream),
            Err(e) => (self.stream, self.failed) = (None, Some(e.to_string())),
        }
    }

    fn send(&mut self, number: u64, _stamp: u64, request: &Request) -> Result<(), LineSendError> {
        if !self.is_up {
            return Err(LineSendError::Down);
        }
        if self.out.len() > MAX_PENDING_BYTES {
            return Err(LineSendError::Full);
        }
        self.out.extend_from_slice(write(number, request).as_bytes());
        // The next poll reports a failure here; at the next connect the exchange reports the requests that had arrived.
        let _ = self.flush();
        Ok(())
    }

    fn confirm(&mut self, _next_report: u64) {
        // This exchange keeps its reports of the day.
    }

    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        if let Some(why) = self.failed.take() {
            return Err(self.lost(&why));
        }
        if let Err(e) = self.flush() {
            return Err(self.lost(&e.to_string()));
        }
        if !self.read_available().map_err(|why| self.lost(&why))? {
            return Ok(0);
        }
        let mut done = 0;
        while let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            self.handle_line(&line, take).map_err(|why| self.lost(&why))?;
            done += 1;
        }
        Ok(done)
    }

    fn warm_up(&mut self) {}

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }
}

/// Formats a request as a line of text.
fn write(number: u64, request: &Request) -> String {
    let id = request.client_order_id().0;
    match request {
        Request::New(new) => format!(
            "NEW {number} id={id} symbol={} account={} side={} price={} quantity={}\n",
            new.symbol.0, new.account.0, new.side, new.price, new.quantity
        ),
        Request::Cancel(cancel) => format!("CANCEL {number} id={id} order={}\n", cancel.original.0),
        Request::Replace(replace) => format!(
            "REPLACE {number} id={id} order={} price={} quantity={}\n",
            replace.original.0, replace.price, replace.quantity
        ),
        Request::Status(status) => format!("STATUS {number} id={id} order={}\n", status.original.0),
        Request::MassCancel(all) => format!("MASSCANCEL {number} id={id} account={}\n", all.account.0),
        Request::Conditional(_) | Request::ReplaceConditional(_) => unreachable!("an armed order stays at its OMS"),
        Request::Extended(_) | Request::ByTextId(_) => unreachable!("a text id stays at its OMS"),
    }
}

/// Reads a report from the fields after its number.
fn read<'a>(fields: impl Iterator<Item = &'a str>) -> Option<ExecutionReport> {
    let mut report = ExecutionReport::default();
    for field in fields {
        let (key, value) = field.split_once('=')?;
        match key {
            "order" => report.order_id = OrderId(value.parse().ok()?),
            "request" => report.client_order_id = ClientOrderId(value.parse().ok()?),
            "exec" => report.exec_id = ExecId(value.parse().ok()?),
            "sequence" => report.venue_sequence = value.parse().ok()?,
            "type" => report.exec_type = value.parse().ok()?,
            "status" => report.status = value.parse().ok()?,
            "side" => report.side = value.parse().ok()?,
            "price" => report.last_price = value.parse::<Price>().ok()?,
            "last" => report.last_quantity = value.parse::<Quantity>().ok()?,
            "filled" => report.cumulative_quantity = value.parse::<Quantity>().ok()?,
            "open" => report.leaves_quantity = value.parse::<Quantity>().ok()?,
            // Fields that a later version of the protocol adds.
            _ => {}
        }
    }
    Some(report)
}

fn main() {
    let address = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(address) = address else { return eprintln!("usage: text 127.0.0.1:PORT") };
    let mut line = TextLine::new(address);
    line.connect(&ResumeState::default());
    loop {
        match line.poll(&mut |event| println!("{event:?}")) {
            Ok(_) => tickpath_clock::sleep_ns(1_000_000),
            Err(lost) => return eprintln!("{lost}"),
        }
    }
}

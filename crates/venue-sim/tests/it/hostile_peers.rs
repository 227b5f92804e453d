//! Resistance of an exchange to strangers: endless connections, names that are no text, more lines than it may know,
//! and lines without its password.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use tickpath_clock::sleep_ns;
use tickpath_market::{ExecType, Request, Side, VenueId};
use tickpath_venue_native::tickpath_venue::{Line, LineEvent, ResumeState};
use tickpath_venue_native::{LineAddress, LinePassword, TcpLine};

use crate::script::order;
use crate::sockets::{ExchangeFolder, RawLine, until};

/// Open files of an exchange that runs short of them, and the connections that it must withstand.
const FILES: u64 = 40;
const CROWD: usize = 60;
/// Heartbeats of the exchange, one second each, over which its processor time is counted, and the max ticks in that
/// time: a busy loop takes a hundred ticks per heartbeat.
const HEARTBEATS: u64 = 3;
const MOST_TICKS: u64 = 120;

#[test]
fn a_listener_that_cannot_accept_pauses_and_reports_why() {
    let site = ExchangeFolder::new("");
    let exchange = site.start_with_files(FILES);
    let mut line = RawLine::up(&site, 1, 7);
    let crowd: Vec<UnixStream> = (0..CROWD).map(|_| UnixStream::connect(site.socket()).expect("it listens")).collect();
    exchange.await_words("a connection waits and cannot be accepted");
    let (from, before) = (line.heartbeats, ticks(exchange.id()));
    let mut heartbeats = from;
    until(
        || {
            line.turn();
            // As rarely as the exchange sends one: it has nothing else to do.
            if line.heartbeats > heartbeats {
                heartbeats = line.heartbeats;
                line.beat();
            }
            heartbeats >= from + HEARTBEATS
        },
        || "heartbeats of the exchange".to_owned(),
    );
    let used = ticks(exchange.id()) - before;
    assert!(used < MOST_TICKS, "{used} ticks of processor time over {HEARTBEATS} heartbeats");
    assert!(!line.is_closed, "a line that is logged on stays");
    // Connections that never log on are closed, whether or not the crowd leaves.
    exchange.await_words("connections are accepted again");
    let words = exchange.count("a connection waits and cannot be accepted");
    assert_eq!(words, exchange.count("connections are accepted again"), "once for as long as any waits");
    RawLine::up(&site, 2, 8);
    drop(crowd);
}

#[test]
fn a_connection_that_never_logs_on_is_closed_however_much_it_sends() {
    let site = ExchangeFolder::new("");
    let _exchange = site.start();
    let mut stream = UnixStream::connect(site.socket()).expect("it listens");
    stream.set_nonblocking(true).expect("it can be");
    let mut head = vec![0x40, 0, 0, 0, 140];
    head.resize(24 + 60, 0);
    // A frame of 64 bytes, sent byte by byte, that is never complete.
    let mut sent = 0;
    until(
        || {
            if sent < head.len() {
                sent += stream.write(&head[sent..=sent]).unwrap_or(0);
            }
            sleep_ns(100_000_000);
            matches!(stream.read(&mut [0; 64]), Ok(0))
        },
        || "the end of the connection".to_owned(),
    );
    assert!(sent < head.len(), "it was closed while it still sent");
}

#[test]
fn a_name_from_the_wire_is_printed_escaped() {
    let site = ExchangeFolder::new("");
    let exchange = site.start();
    let name = "desk\u{1b}[2J\r\n@listening on nothing\u{202e}\u{7}".as_bytes();
    let mut wire = RawLine::named(&site, 1, 7, name);
    wire.await_welcome();
    drop(wire);
    exchange.await_words("has disconnected");
    let output = exchange.output();
    let lines: Vec<&String> = output.iter().filter(|line| line.starts_with("@line ")).collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    for line in lines {
        assert!(line.contains(r"'desk\u{1b}[2J\r\n@listening on nothing\u{202e}\u{7}'"), "{line}");
    }
    // The length of the name does not matter.
    let mut wire = RawLine::named(&site, 1, 7, &[b'x'; 3_000]);
    wire.await_welcome();
    exchange.await_words("'xxx");
    assert!(exchange.output().iter().all(|line| line.len() < 200));
}

#[test]
fn a_new_line_replaces_a_forgettable_one_at_the_limit() {
    let site = ExchangeFolder::new("most_lines = 3\n");
    let exchange = site.start();
    let mut lines: Vec<RawLine> = (1..=3).map(|journal| RawLine::up(&site, journal, journal)).collect();
    for line in &mut lines {
        line.order(Side::Buy, 1, 100);
        line.confirm();
    }
    let refused = RawLine::named(&site, 4, 4, b"one too many").await_refusal();
    assert!(refused.contains("knows 3 lines") && refused.contains("most_lines"), "{refused}");
    exchange.await_words("line 'one too many' was refused");
    // One line is gone, and its order rests.
    drop(lines.pop());
    exchange.await_words("line 'desk' has disconnected");
    assert!(RawLine::named(&site, 4, 4, b"desk").await_refusal().contains("knows 3 lines"));
    // Another line is gone and has no order left.
    let mut over = lines.pop().expect("there are two");
    over.cancel(1);
    over.confirm();
    drop(over);
    until(|| exchange.count("line 'desk' has disconnected") == 2, || "the end of the line".to_owned());
    // A restart keeps that knowledge.
    drop((lines, exchange));
    let _exchange = site.start();
    let mut new = RawLine::up(&site, 4, 4);
    assert_eq!(new.order(Side::Buy, 1, 100).len(), 1, "it trades");
    assert!(RawLine::named(&site, 5, 5, b"desk").await_refusal().contains("knows 3 lines"));
}

#[test]
fn a_line_proves_the_password_of_the_exchange() {
    let site = ExchangeFolder::new("password_file = 'lines.password'\n");
    site.write("lines.password", "correct horse\nof nothing\n");
    site.write("wrong.password", "battery staple\n");
    let exchange = site.start();
    let mut line = tcp_line(&site, Some("lines.password"));
    assert_eq!(come_up(&mut line), Ok(()));
    let new = Request::New(order(Side::Buy, 1, 5, 100));
    line.send(0, 0, &new).expect("it is up");
    let mut types = Vec::new();
    until(
        || {
            let polled = line.poll(&mut |event| {
                if let LineEvent::Report { report, .. } = event {
                    types.push(report.exec_type);
                }
            });
            polled.expect("it stays up");
            !types.is_empty()
        },
        || "the report".to_owned(),
    );
    assert_eq!(types, [ExecType::New.code()]);
    let wrong = come_up(&mut tcp_line(&site, Some("wrong.password"))).expect_err("another password");
    assert!(wrong.contains("the password is not that of this exchange's lines"), "{wrong}");
    let none = come_up(&mut tcp_line(&site, None)).expect_err("no password");
    assert!(none.contains("requires a password") && none.contains("password_file"), "{none}");
    // A logon cannot bypass the proof.
    assert!(RawLine::named(&site, 1, 7, b"desk").await_refusal().contains("requires a password"));
    exchange.await_words("was refused");
}

#[test]
fn a_line_rejects_another_venue() {
    let site = ExchangeFolder::new("");
    let _exchange = site.start();
    let (own, other) = (VenueId(3), VenueId(4));
    assert_eq!(come_up(&mut tcp_line(&site, None).with_venue(own)), Ok(()));
    let why = come_up(&mut tcp_line(&site, None).with_venue(other)).expect_err("venue 3 is there");
    assert!(why.contains("venue 3 is at this address, and venue 4 should be"), "{why}");
}

#[test]
fn a_line_with_a_password_trusts_no_exchange_without_one() {
    let site = ExchangeFolder::new("");
    site.write("lines.password", "correct horse\n");
    let _exchange = site.start();
    let why = come_up(&mut tcp_line(&site, Some("lines.password"))).expect_err("the exchange has no password");
    assert!(why.contains("this exchange uses no password"), "{why}");
}

fn tcp_line(site: &ExchangeFolder, password: Option<&str>) -> TcpLine {
    let line = TcpLine::new(LineAddress::Unix(site.socket()), "desk").expect("a clock");
    match password {
        Some(file) => line.with_password(LinePassword::read(&site.path(file)).expect("it is there")),
        None => line,
    }
}

/// Connects a line; returns the reason if the connection is lost.
fn come_up(line: &mut TcpLine) -> Result<(), String> {
    line.connect(&ResumeState { journal: 9, oms: 9, incarnation: 1, next_request: 0, next_report: 0 });
    let mut up = None;
    until(
        || {
            let polled = line.poll(&mut |event| {
                if let LineEvent::Up { .. } = event {
                    up = Some(Ok(()));
                }
            });
            if let Err(lost) = polled {
                up = Some(Err(lost.to_string()));
            }
            up.is_some()
        },
        || "an answer".to_owned(),
    );
    up.expect("just there")
}

/// Returns the processor time of a process so far, in kernel ticks.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    let behind = stat.rsplit(')').next().expect("a name stands in brackets");
    let fields: Vec<&str> = behind.split_whitespace().collect();
    [11, 12].iter().map(|&at: &usize| fields[at].parse::<u64>().expect("a number")).sum()
}

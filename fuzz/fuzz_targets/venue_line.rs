//! An exchange that sends anything to a line: its bytes are events in the contract's order, or the line is lost once,
//! with a sentence.
//!
//! Input: the bytes of a connection, after one that says in which pieces they come.

#![no_main]

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tickpath_market::{NewOrder, Request};
use tickpath_venue::{Line, LineEvent, ResumeState};
use tickpath_venue_native::{LineAddress, TcpLine};

/// Polls within which a line finds out that the other side has gone.
const MAX_POLLS: u32 = 10_000;

struct Exchange {
    address: LineAddress,
    listener: UnixListener,
    _folder: tempfile::TempDir,
}

static EXCHANGE: LazyLock<Exchange> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("exchange.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    Exchange { address: LineAddress::Unix(path), listener, _folder: folder }
});

fuzz_target!(|input: &[u8]| {
    let Some((&piece, rest)) = input.split_first() else { return };
    let mut line = TcpLine::new(EXCHANGE.address.clone(), "fuzz").expect("a clock");
    let resume = ResumeState { journal: 1, oms: 0, incarnation: 1, next_request: 5, next_report: 3 };
    line.connect(&resume);
    let (mut exchange, _) = EXCHANGE.listener.accept().expect("the line has come");
    let (mut next, mut lost) = (None, None);
    let mut poll = |line: &mut TcpLine| {
        if lost.is_some() {
            return true;
        }
        let mut is_up = false;
        let polled = line.poll(&mut |event| match event {
            LineEvent::Up { next_report, .. } => {
                assert!(next.is_none(), "a connection is up once");
                (next, is_up) = (Some(next_report.unwrap_or(resume.next_report)), true);
            }
            LineEvent::Acknowledged(_) => assert!(next.is_some(), "nothing comes before the line is up"),
            LineEvent::Report { number, .. } => {
                assert_eq!(next, Some(number), "reports are numbered without a gap, from the number of Up on");
                next = Some(number + 1);
            }
            LineEvent::Detail { .. } => panic!("this line has reports without details"),
        });
        if is_up && polled.is_ok() {
            let _ = line.send(5, 1, &Request::New(NewOrder::default()));
        }
        lost = polled.err();
        lost.is_some()
    };
    // It begins to ask before anything comes.
    poll(&mut line);
    for piece in rest.chunks(usize::from(piece) * 16 + 1) {
        if exchange.write_all(piece).is_err() || poll(&mut line) {
            break;
        }
    }
    drop(exchange);
    assert!((0..MAX_POLLS).any(|_| poll(&mut line)), "nobody is there, and the line has not noticed");
    assert_eq!(line.poll(&mut |event| panic!("of a line that is lost: {event:?}")), Ok(0));
});

//! A relay on the wire before a Redis server: it forwards all traffic, but spoils one of a hundred messages, and
//! counts the spoiled ones.
//!
//! ```text
//!   client ── PUBLISH, LPUSH, … ──> relay ── the same; DBSIZE instead of what is dropped ──> server
//!     └──<── answers, and messages to subscribers, some twice or behind the next one ──<───────┘
//! ```
//! Every workload that reaches its server by a URL can thus be lied to, without support of its own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tickpath_lab_harness::LabError;

use crate::tamper::FAULT_EVERY;

/// Command sent in place of a dropped one: it changes nothing, and its answer is a number too.
const SUBSTITUTE_COMMAND: &[u8] = b"*1\r\n$6\r\nDBSIZE\r\n";

/// Commands that send a message to a server.
const MESSAGES: [&[u8]; 2] = [b"$7\r\nPUBLISH\r\n", b"$5\r\nLPUSH\r\n"];

/// First bytes of a message to a subscriber.
const MESSAGE_PREFIX: &[u8] = b"*3\r\n$7\r\nmessage\r\n";

/// The fault that a relay injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayFault {
    /// Messages that clients publish and push: they never arrive.
    Drop,
    /// Messages to subscribers: they arrive twice.
    Duplicate,
    /// Messages to subscribers: they arrive behind the next message.
    Swap,
}

/// A relay before a server of this host. The relay ends with this value, its connections with their clients.
pub(crate) struct FaultRelay {
    port: u16,
    counts: Arc<RelayCounters>,
}

#[derive(Default)]
struct RelayCounters {
    is_over: AtomicBool,
    seen: AtomicU64,
    faults: AtomicU64,
}

impl FaultRelay {
    /// Starts a relay before the server that listens on this port.
    pub fn start(server: u16, spoils: RelayFault) -> Result<Self, LabError> {
        let failed = |e: io::Error| LabError::Failed(format!("the relay cannot listen on loopback: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let counts = Arc::new(RelayCounters::default());
        let shared = counts.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let counts = shared.clone();
                // After an error the other end sees the connection close.
                thread::spawn(move || relay_connection(&client, server, spoils, &counts));
            }
        });
        Ok(Self { port, counts })
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn faults(&self) -> u64 {
        self.counts.faults.load(Ordering::Relaxed)
    }
}

impl Drop for FaultRelay {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl RelayCounters {
    /// Counts a message; returns whether to spoil it.
    fn is_faulty(&self) -> bool {
        let seen = 1 + self.seen.fetch_add(1, Ordering::Relaxed);
        let is_spoiled = seen % FAULT_EVERY == FAULT_EVERY / 2;
        self.faults.fetch_add(u64::from(is_spoiled), Ordering::Relaxed);
        is_spoiled
    }
}

/// Carries a connection until either end closes it.
fn relay_connection(client: &TcpStream, server: u16, spoils: RelayFault, counts: &RelayCounters) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = forward_replies(&server, client, spoils, counts);
            let _ = client.shutdown(Shutdown::Both);
        });
        let asked = forward_commands(client, &server, spoils, counts);
        let _ = server.shutdown(Shutdown::Both);
        asked
    })
}

fn forward_commands(
    client: &TcpStream,
    mut server: &TcpStream,
    spoils: RelayFault,
    counts: &RelayCounters,
) -> io::Result<()> {
    let mut client = BufReader::new(client);
    loop {
        let command = read_value(&mut client)?;
        if command.is_empty() {
            return Ok(());
        }
        let is_dropped = spoils == RelayFault::Drop && is_message(&command) && counts.is_faulty();
        server.write_all(if is_dropped { SUBSTITUTE_COMMAND } else { &command })?;
    }
}

/// Forwards the server's answers. A message held for a swap is also sent if no other message follows.
fn forward_replies(
    server: &TcpStream,
    mut client: &TcpStream,
    spoils: RelayFault,
    counts: &RelayCounters,
) -> io::Result<()> {
    let mut server = BufReader::new(server);
    let mut kept = Vec::new();
    loop {
        let reply = read_value(&mut server)?;
        let is_spoiled = spoils != RelayFault::Drop && reply.starts_with(MESSAGE_PREFIX) && counts.is_faulty();
        if is_spoiled && spoils == RelayFault::Swap {
            kept = reply;
            continue;
        }
        client.write_all(&reply)?;
        client.write_all(if is_spoiled { &reply } else { &kept })?;
        kept.clear();
        if reply.is_empty() {
            return Ok(());
        }
    }
}

fn is_message(command: &[u8]) -> bool {
    let name = command.splitn(2, |byte| *byte == b'\n').nth(1);
    name.is_some_and(|name| MESSAGES.iter().any(|message| name.starts_with(message)))
}

/// Reads the bytes of one command or answer, with all nested values; empty at the end.
fn read_value(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let (mut bytes, mut left) = (Vec::new(), 1);
    while left > 0 {
        let start = bytes.len();
        let length = read_length(from, &mut bytes)?;
        left -= 1;
        match (bytes.get(start), length) {
            (Some(b'*'), Some(values)) => left += values,
            (Some(b'$'), Some(text)) => _ = from.by_ref().take(text + 2).read_to_end(&mut bytes)?,
            _ => {}
        }
    }
    Ok(bytes)
}

/// Reads one line, and the number in it, if there is one: of values, or of the bytes of a text.
fn read_length(from: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let start = bytes.len();
    from.read_until(b'\n', bytes)?;
    let digits = bytes.get(start + 1..).and_then(|digits| std::str::from_utf8(digits).ok());
    Ok(digits.and_then(|digits| digits.trim_end().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_and_messages_recognised() {
        let commands: [(&[u8], bool); 4] = [
            (b"*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$4\r\n*1\r\n\r\n", true),
            (b"PING\r\n", false),
            (b"*2\r\n$9\r\nSUBSCRIBE\r\n$7\r\nPUBLISH\r\n", false),
            (b"*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$0\r\n\r\n", true),
        ];
        let wire = commands.map(|(bytes, _)| bytes).concat();
        let mut wire = wire.as_slice();
        for (bytes, is_one) in commands {
            let read = read_value(&mut wire).expect("memory can be read");
            assert_eq!((read.as_slice(), is_message(&read)), (bytes, is_one));
        }
        assert!(read_value(&mut wire).expect("memory can be read").is_empty());
    }

    #[test]
    fn replies_are_split_at_any_content() {
        let answers: [&[u8]; 6] = [
            b"+OK\r\n",
            b":7\r\n",
            b"$-1\r\n",
            b"*2\r\n*1\r\n$4\r\n\r\n*9\r\n:1\r\n",
            b"*-1\r\n",
            b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$0\r\n\r\n",
        ];
        let wire = answers.concat();
        let mut wire = wire.as_slice();
        for bytes in answers {
            assert_eq!(read_value(&mut wire).expect("memory can be read"), bytes);
        }
        assert!(wire.is_empty());
    }

    #[test]
    fn one_message_in_a_hundred_is_spoiled_and_counted() {
        let counts = RelayCounters::default();
        let spoiled: Vec<u64> = (1..=300).filter(|_| counts.is_faulty()).collect();
        assert_eq!((spoiled.as_slice(), counts.faults.into_inner()), (&[50, 150, 250][..], 3));
    }
}

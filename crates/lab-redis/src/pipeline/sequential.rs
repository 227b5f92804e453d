//! A single connection: a batch is written, then its replies are read, then the next batch is written. The wait for
//! replies follows `docs/design/redis-generator.md`.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tickpath_clock::Clock;

use super::control::ServerReply;
use super::load::{BUFFER_BYTES, CommandBlock, GeneratorConnection, LoadProgress, PipelineRole, closed};
use crate::address::SERVER_TIMEOUT;
use tickpath_lab_tools::redis_socket::RedisSocket;

/// Sends batches as long as there is a next one.
pub(super) fn batches(
    block: &CommandBlock,
    link: &mut GeneratorConnection,
    tally: &mut LoadProgress,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut sleeper = ReplyWaiter::new()?;
    let mut now = tally.first;
    while let Some(commands) = tally.next_batch(now) {
        let sent = now;
        tally.sent += commands;
        write(link.stream(), block.first(commands), &mut tally.calls)?;
        sleeper.sleep(link.stream(), &mut tally.calls)?;
        while link.replies.received() < tally.sent {
            let bytes = read(link.stream(), &mut buffer, &mut tally.calls)?;
            link.replies.receive(&buffer[..bytes])?;
        }
        now = tally.clock.ticks();
        tally.record_batch(sent, sent, now);
    }
    Ok(())
}

/// Reads a number, adds 1, and writes it: two round trips each time, because the sum needs the answer.
pub(super) fn get_set(role: &PipelineRole, link: &mut GeneratorConnection, tally: &mut LoadProgress) -> io::Result<()> {
    let mut now = tally.first;
    while tally.next_batch(now).is_some() {
        let sent = now;
        tally.sent += 1;
        let found = link.control.exchange(&["GET", &role.key])?.number();
        let sum = (found.unwrap_or(0) + 1).to_string();
        let written = link.control.exchange(&["SET", &role.key, &sum])?;
        // A write and a read for each command.
        tally.calls += 4;
        link.replies.count(found.is_some() && matches!(written, ServerReply::Text(_)));
        now = tally.clock.ticks();
        tally.record_batch(sent, sent, now);
    }
    Ok(())
}

/// Waits until the first reply of a batch arrives, with an interest that is registered again each time, like
/// redis-benchmark.
///
/// These calls look wasteful, and a plain blocking read does without them. But a deregistered interest leaves work for
/// the kernel's next quiet moment, and an idle CPU with such work does not stop its timer tick. On a virtual machine,
/// stopping and starting the tick are exits to the host: a round trip takes 54 µs with a blocking read and 45 µs this
/// way.
struct ReplyWaiter {
    poll: Poll,
    events: Events,
    registered: bool,
}

impl ReplyWaiter {
    fn new() -> io::Result<Self> {
        Ok(Self { poll: Poll::new()?, events: Events::with_capacity(4), registered: false })
    }

    fn sleep(&mut self, stream: &RedisSocket, calls: &mut u64) -> io::Result<()> {
        let socket = stream.as_raw_fd();
        if self.registered {
            self.poll.registry().deregister(&mut SourceFd(&socket))?;
        }
        self.poll.registry().register(&mut SourceFd(&socket), Token(0), Interest::READABLE)?;
        *calls += 2 + u64::from(self.registered);
        self.registered = true;
        match self.poll.poll(&mut self.events, Some(SERVER_TIMEOUT)) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
            // The following read waits for missing bytes, up to the read timeout.
            _ => Ok(()),
        }
    }
}

fn write(stream: &mut RedisSocket, mut bytes: &[u8], calls: &mut u64) -> io::Result<()> {
    while !bytes.is_empty() {
        *calls += 1;
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn read(stream: &mut RedisSocket, buffer: &mut [u8], calls: &mut u64) -> io::Result<usize> {
    loop {
        *calls += 1;
        match stream.read(buffer) {
            Ok(0) => return Err(closed()),
            Ok(bytes) => return Ok(bytes),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

//! Connection to a server: its socket can be polled without waiting, or block in the kernel.

use std::io::{self, Read, Write};
use std::time::Duration;

use tickpath_clock::HostClock;

use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::resp::{self, MAX_PLAIN_REPLY_BYTES, RespError, RespItem, RespReader, UNEXPECTED};
use crate::server::{RedisEndpoint, RedisServerAddress, TIMEOUT};
use crate::socket::{RedisSocket, UnreadState};

/// Initial size of the receive buffer; it grows with the messages.
const BUFFER_BYTES: usize = 64 << 10;

/// Minimum free space for a read: with less a read is not worth its system call.
const READ_BYTES: usize = 16 << 10;

/// Times that the receive buffer runs empty between two checks, which shrink it to what was needed meanwhile.
const MAX_EMPTY_RUNS: u32 = 16;

/// Max length of a stored script digest, in bytes; a server's has 40.
const MAX_DIGEST_BYTES: usize = 64;

/// Transfer rate that extends a timeout: one more second for each mebibyte that is sent or received.
const BYTES_A_SECOND: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct RedisConnection {
    socket: RedisSocket,
    address: RedisServerAddress,
    /// Received and unconsumed bytes lie at `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of times the buffer ran empty since the last check of its size, and the most bytes that lay in it
    /// meanwhile.
    empty_runs: u32,
    peak: usize,
    mode: RedisReadMode,
    /// Number of outstanding replies that will be discarded.
    discarded_replies: usize,
    /// Bytes of the last send that the socket has accepted.
    sent: usize,
    clock: HostClock,
    /// Time of the last received bytes.
    last_received: HostInstant,
    /// Time of the last `PING` of [`Self::check_alive`], if nothing has come since.
    pinged: Option<HostInstant>,
    /// The server is a cluster node, which may hand its slots to another node.
    is_node: bool,
    /// Scripts that were run, with their digests; no digest if the server did not store the script.
    scripts: Vec<(&'static str, Option<String>)>,
}

/// Behaviour of the socket while it has nothing to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RedisReadMode {
    NonBlocking,
    Blocking(Duration),
}

impl RedisConnection {
    pub fn connect(server: &RedisEndpoint, address: &RedisServerAddress) -> ServerResult<Self> {
        let socket = RedisSocket::connect(address, server.tls.as_ref())?;
        Ok(Self::new(socket, address.clone(), server.clock, server.is_cluster))
    }

    fn new(socket: RedisSocket, address: RedisServerAddress, clock: HostClock, is_node: bool) -> Self {
        Self {
            socket,
            address,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            empty_runs: 0,
            peak: 0,
            mode: RedisReadMode::Blocking(TIMEOUT),
            discarded_replies: 0,
            sent: 0,
            clock,
            last_received: HostInstant::now(clock),
            pinged: None,
            is_node,
            scripts: Vec::new(),
        }
    }

    /// Returns whether the server follows no other server. A server that refuses `ROLE` counts as a master.
    pub fn is_master(&mut self) -> ServerResult<bool> {
        let role = self.request(&["ROLE"], |items| {
            items.array()?;
            Ok(items.bulk()? != b"slave")
        });
        match role {
            Err(RedisServerError::Refused(_)) => Ok(true),
            known => known,
        }
    }

    pub fn address(&self) -> &RedisServerAddress {
        &self.address
    }

    /// Returns whether the connection is unusable, as far as can be seen without waiting: the server has closed it, or
    /// has sent bytes that no request asked for. Must be called while no reply is outstanding.
    pub fn is_closed(&mut self) -> bool {
        let has_ended = match self.socket.unread_state() {
            UnreadState::Empty => false,
            UnreadState::Closed => true,
            // Over TLS these may be protocol messages without data.
            UnreadState::Readable => self.receive().is_err(),
        };
        has_ended || self.has_unrequested_bytes()
    }

    /// Returns whether unrequested bytes lie in the buffer: they would be taken for the next reply, and could fill the
    /// memory. Discards the unwanted replies first.
    fn has_unrequested_bytes(&mut self) -> bool {
        while self.discarded_replies > 0 {
            match self.length_within(MAX_PLAIN_REPLY_BYTES) {
                Ok(Some(length)) => {
                    self.discarded_replies -= 1;
                    self.consume(length);
                }
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
        !self.unread().is_empty()
    }

    pub fn sent(&self) -> usize {
        self.sent
    }

    pub fn ping(&mut self) -> ServerResult {
        self.request(&["PING"], |items| if items.status()? == b"PONG" { Ok(()) } else { Err(UNEXPECTED) })
    }

    /// Checks a silent subscription: sends a `PING` after half of `silence`, and fails when all of it is over without a
    /// byte. The reply is no message, and is skipped by the reader.
    pub fn check_alive(&mut self, silence: Duration) -> ServerResult {
        if self.last_received.elapsed() < silence / 2 {
            return Ok(());
        }
        match &self.pinged {
            Some(pinged) if pinged.elapsed() >= silence / 2 => Err(RedisServerError::Silent(silence)),
            Some(_) => Ok(()),
            None => {
                self.pinged = Some(HostInstant::now(self.clock));
                self.send(&resp::encode_command(&["PING"]))
            }
        }
    }

    pub fn idle_time(&self) -> Duration {
        self.last_received.elapsed()
    }

    /// Subscribes to a channel. Returns when the server has confirmed, so that no later message is missed.
    pub fn subscribe(&mut self, channel: &str) -> ServerResult {
        let confirmed = self.request(&["SUBSCRIBE", channel], |items| {
            let is_confirmed = items.array()? == 3 && items.bulk()? == b"subscribe";
            if is_confirmed { Ok(()) } else { Err(UNEXPECTED) }
        });
        confirmed.map_err(RedisServerError::at_first_reply)
    }

    /// Sends a command and waits for its reply, which brings no message.
    pub fn request<T>(
        &mut self,
        parts: &[&str],
        read: impl FnOnce(&mut RespReader<'_>) -> Result<T, RespError>,
    ) -> ServerResult<T> {
        self.request_messages(0, parts, read)
    }

    /// Sends a command and waits for its reply, which brings at most `messages` messages.
    pub fn request_messages<T>(
        &mut self,
        messages: usize,
        parts: &[&str],
        read: impl FnOnce(&mut RespReader<'_>) -> Result<T, RespError>,
    ) -> ServerResult<T> {
        self.send(&resp::encode_command(parts))?;
        self.receive_messages(messages, TIMEOUT, read)
    }

    /// Runs a script by its digest: sending the text each time costs the server some 5 µs a kilobyte. Falls back to the
    /// text where the user may not store scripts or the server has lost it. The reply is bounded like one message.
    pub fn run_script<T>(
        &mut self,
        script: &'static str,
        keys: &[&str],
        arguments: &[&str],
        mut read: impl FnMut(&mut RespReader<'_>) -> Result<T, RespError>,
    ) -> ServerResult<T> {
        let count = keys.len().to_string();
        if let Some(digest) = self.digest(script)? {
            let command = [&["EVALSHA", digest.as_str(), &count][..], keys, arguments].concat();
            let answer = self.request_messages(1, &command, &mut read);
            if !matches!(&answer, Err(RedisServerError::Refused(line)) if line.starts_with("NOSCRIPT")) {
                return answer;
            }
            self.scripts.retain(|(known, _)| *known != script);
        }
        self.request_messages(1, &[&["EVAL", script, &count][..], keys, arguments].concat(), read)
    }

    /// Returns the digest by which this server knows a script, after a `SCRIPT LOAD` if needed; none if the server
    /// refuses it.
    fn digest(&mut self, script: &'static str) -> ServerResult<Option<String>> {
        if let Some((_, digest)) = self.scripts.iter().find(|(known, _)| *known == script) {
            return Ok(digest.clone());
        }
        let loaded = self.request(&["SCRIPT", "LOAD", script], |items| match items.bulk()? {
            digest if digest.len() <= MAX_DIGEST_BYTES => Ok(String::from_utf8_lossy(digest).into_owned()),
            _ => Err(UNEXPECTED),
        });
        let digest = match loaded {
            Ok(digest) => Some(digest),
            Err(RedisServerError::Refused(_)) => None,
            Err(e) => return Err(e),
        };
        self.scripts.push((script, digest.clone()));
        Ok(digest)
    }

    /// Sends a command whose reply will be discarded.
    pub fn send_unanswered(&mut self, command: &[u8]) -> ServerResult {
        self.send(command)?;
        self.discarded_replies += 1;
        Ok(())
    }

    /// Sends commands. Fails after the timeout of an answer, extended by a second for each mebibyte.
    pub fn send(&mut self, commands: &[u8]) -> ServerResult {
        let start = HostInstant::now(self.clock);
        self.sent = 0;
        loop {
            let written = match commands.get(self.sent..).filter(|left| !left.is_empty()) {
                Some(left) => self.socket.write(left),
                // Over TLS the last bytes may still lie in the session's buffer.
                None => match self.socket.flush() {
                    Ok(()) => return Ok(()),
                    Err(e) => Err(e),
                },
            };
            match written {
                Ok(0) => return Err(RedisServerError::Closed),
                Ok(bytes) => {
                    self.sent += bytes;
                    if self.sent < commands.len() && time_left(TIMEOUT, &start, self.sent).is_zero() {
                        return Err(RedisServerError::Timeout);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && self.mode == RedisReadMode::NonBlocking => {
                    self.set_mode(RedisReadMode::Blocking(TIMEOUT))?;
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Waits for the next reply, which brings no message, and reads it. The timeout is extended by a second for each
    /// mebibyte of the reply.
    pub fn receive_reply<T>(
        &mut self,
        timeout: Duration,
        read: impl FnOnce(&mut RespReader<'_>) -> Result<T, RespError>,
    ) -> ServerResult<T> {
        self.receive_messages(0, timeout, read)
    }

    /// Waits for the next reply, which brings at most `messages` messages, and reads it. After a malformed reply the
    /// connection is unusable: nothing more is read from it.
    pub fn receive_messages<T>(
        &mut self,
        messages: usize,
        timeout: Duration,
        read: impl FnOnce(&mut RespReader<'_>) -> Result<T, RespError>,
    ) -> ServerResult<T> {
        let start = HostInstant::now(self.clock);
        let length = loop {
            let max_bytes =
                if self.discarded_replies > 0 { MAX_PLAIN_REPLY_BYTES } else { resp::max_reply_bytes(messages) };
            match self.length_within(max_bytes)? {
                Some(length) if self.discarded_replies > 0 => {
                    self.discarded_replies -= 1;
                    self.consume(length);
                }
                Some(length) => break length,
                None => {
                    let left = time_left(timeout, &start, self.unread().len());
                    if left.is_zero() || !self.receive_within(left)? {
                        return Err(RedisServerError::Timeout);
                    }
                }
            }
        };
        let mut items = RespReader::new(self.reply(length));
        let outcome = match items.clone().item()? {
            Some(RespItem::Error(line)) => Err(self.error_of_line(line)),
            _ => read(&mut items).map_err(RedisServerError::from),
        };
        self.consume(length);
        outcome
    }

    pub fn error_of_line(&self, line: &[u8]) -> RedisServerError {
        let error = RedisServerError::from_line(line);
        if self.is_node { error.in_cluster() } else { error }
    }

    /// Returns the length of the oldest reply, or of the next value in it, which brings at most `messages` messages;
    /// none if it is incomplete.
    #[inline]
    pub fn length(&self, messages: usize) -> ServerResult<Option<usize>> {
        self.length_within(resp::max_reply_bytes(messages))
    }

    #[inline]
    fn length_within(&self, max_bytes: usize) -> ServerResult<Option<usize>> {
        Ok(resp::length(self.unread(), max_bytes)?)
    }

    #[inline]
    pub fn reply(&self, length: usize) -> &[u8] {
        &self.unread()[..length]
    }

    /// Returns the number of entries of one stream in a reply that may be incomplete, and the bytes before the entries.
    /// The number is none if the request timed out on the server.
    pub fn entries(&self) -> ServerResult<Option<(Option<usize>, usize)>> {
        let mut items = RespReader::with_limit(self.unread(), MAX_PLAIN_REPLY_BYTES);
        match items.item()? {
            Some(RespItem::Array(1)) => {}
            Some(RespItem::Null) => return Ok(Some((None, items.at))),
            Some(RespItem::Error(line)) => return Err(self.error_of_line(line)),
            Some(_) => return Err(UNEXPECTED.into()),
            None => return Ok(None),
        }
        match (items.item()?, items.item()?, items.item()?) {
            (Some(RespItem::Array(2)), Some(RespItem::Bulk(_key)), Some(RespItem::Array(entries))) => {
                Ok(Some((Some(entries), items.at)))
            }
            (_, _, Some(_)) => Err(UNEXPECTED.into()),
            (_, _, None) => Ok(None),
        }
    }

    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Reads available bytes into the buffer, without waiting; false if there are none.
    pub fn receive(&mut self) -> ServerResult<bool> {
        self.set_mode(RedisReadMode::NonBlocking)?;
        self.read()
    }

    /// Waits for bytes up to `timeout` and reads them; false if none came.
    pub fn receive_within(&mut self, timeout: Duration) -> ServerResult<bool> {
        self.set_mode(RedisReadMode::Blocking(timeout.max(Duration::from_micros(1))))?;
        self.read()
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn read(&mut self) -> ServerResult<bool> {
        self.make_room();
        loop {
            match self.socket.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(RedisServerError::Closed),
                Ok(bytes) => {
                    self.end += bytes;
                    (self.last_received, self.pinged) = (HostInstant::now(self.clock), None);
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            self.reset_buffer();
        }
        if self.buffer.len() - self.end < READ_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < READ_BYTES {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    /// Resets an empty buffer, and shrinks it if most of it was not needed for a while.
    fn reset_buffer(&mut self) {
        (self.empty_runs, self.peak) = (self.empty_runs + 1, self.peak.max(self.end));
        (self.start, self.end) = (0, 0);
        if self.empty_runs < MAX_EMPTY_RUNS {
            return;
        }
        let needed = (2 * self.peak).max(BUFFER_BYTES);
        if self.buffer.len() > 2 * needed {
            self.buffer.truncate(needed);
            self.buffer.shrink_to_fit();
        }
        (self.empty_runs, self.peak) = (0, 0);
    }

    /// Changes the socket's mode only if it differs: each change is one or two system calls.
    fn set_mode(&mut self, mode: RedisReadMode) -> io::Result<()> {
        if self.mode == mode {
            return Ok(());
        }
        if (self.mode == RedisReadMode::NonBlocking) != (mode == RedisReadMode::NonBlocking) {
            self.socket.set_nonblocking(mode == RedisReadMode::NonBlocking)?;
        }
        if let RedisReadMode::Blocking(timeout) = mode {
            self.socket.set_read_timeout(timeout)?;
        }
        self.mode = mode;
        Ok(())
    }
}

/// Returns the time left of a timeout that started at `start` and grows with the transferred `bytes`. Rounded up to
/// whole seconds, so that the socket's timeout seldom changes.
fn time_left(timeout: Duration, start: &HostInstant, bytes: usize) -> Duration {
    let total = timeout + Duration::from_secs((bytes / BYTES_A_SECOND) as u64);
    let left = total.saturating_sub(start.elapsed());
    if left.is_zero() { left } else { Duration::from_secs(left.as_secs() + 1).min(timeout) }
}

pub(crate) fn is_status(items: &mut RespReader<'_>) -> Result<(), RespError> {
    items.status().map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A connection and the server's end of it.
    fn link() -> (RedisConnection, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let (socket, address) = (RedisSocket::Unix(near), RedisServerAddress::Unix("/nowhere".into()));
        (RedisConnection::new(socket, address, HostClock::get().unwrap(), false), far)
    }

    #[test]
    fn the_receive_buffer_shrinks_after_a_long_message() {
        let (mut link, mut far) = link();
        let mut long = Vec::new();
        resp::bulk(&mut long, &[&vec![7; 4 << 20]]);
        std::thread::scope(|scope| {
            scope.spawn(|| far.write_all(&long).unwrap());
            assert_eq!(link.receive_reply(TIMEOUT, |items| Ok(items.bulk()?.len())).unwrap(), 4 << 20);
        });
        assert!(link.buffer.len() > 4 << 20);
        for _ in 0..=2 * MAX_EMPTY_RUNS {
            far.write_all(b"+OK\r\n").unwrap();
            link.receive_reply(TIMEOUT, is_status).unwrap();
        }
        assert_eq!(link.buffer.len(), BUFFER_BYTES);
    }

    #[test]
    fn a_trickling_answer_times_out() {
        let (mut link, mut far) = link();
        let trickling = std::thread::spawn(move || {
            // Writes one byte at a time, each before the timeout, until the reader closes the socket.
            far.write_all(b"+").unwrap();
            while far.write_all(b"x").is_ok() {
                tickpath_clock::sleep_ns(100_000_000);
            }
        });
        let answer = link.receive_reply(Duration::from_secs(1), |items| items.status().map(<[u8]>::len));
        assert!(matches!(answer, Err(RedisServerError::Timeout)), "{answer:?}");
        drop(link);
        trickling.join().unwrap();
    }
}

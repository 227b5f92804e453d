//! A million commands as a single pipeline, and as a hundred pipelines of ten thousand: nearly the same speed, but very
//! different amounts of server memory for replies.
//!
//! ```text
//!   timed   write ──> …   read <── …      both at once, as fast as it goes
//!   held    write all ──> server: its replies fill the socket, then its memory ──> look ──> read all
//! ```
//! The timed run reads while it writes. The server's memory for a client that writes everything first is measured
//! separately, over a second connection, because polling takes the server's time.

use std::io::{self, Read, Write};

use tickpath_clock::{Clock, HostClock, sleep_ns};

use super::command::encode;
use super::control::{ControlConnection, ServerReply};
use super::replies::{Replies, ReplyReceiver};
use super::target::ClaimedKey;
use super::{BenchPart, PipelineClient, Settings, run};
use tickpath_lab_compare::in_turn;
use tickpath_lab_harness::{Lab, LabError, memory};
use tickpath_lab_result::{MemoryUse, Run, Series};

/// The commands of the long pipeline.
pub const LONG_PIPELINE: u64 = 1_000_000;

/// The commands of each shorter pipeline.
pub const BATCH: u64 = 10_000;

/// Commands per write.
const COMMANDS_PER_WRITE: usize = 1_000;

/// Time without progress after which a socket counts as full.
const FULL_TIMEOUT_NS: i64 = 300_000_000;

/// Time without bytes after which a server counts as gone.
const SERVER_TIMEOUT_NS: i64 = 5_000_000_000;

/// Polls of a server that has received everything, and the pause between two polls: several rounds of its housekeeping,
/// which counts its clients' memory ten times a second.
const MEMORY_POLLS: usize = 25;
const POLL_PAUSE_NS: u64 = 10_000_000;

/// Pause before a socket that neither accepts nor delivers bytes is tried again.
const RETRY_PAUSE_NS: u64 = 100_000;

/// Runs both in turn. Only the server, the CPUs and the repeat of `settings` count.
pub fn compare_long(lab: &Lab<'_>, settings: &Settings, runs: &mut Vec<Run>) -> Result<(), LabError> {
    for depth in in_turn(settings.repeat, [LONG_PIPELINE, BATCH]) {
        let settings = Settings {
            client: PipelineClient::Rust,
            depth,
            count: Some(LONG_PIPELINE),
            connections: 1,
            rate: None,
            seconds: 3.0,
            part: BenchPart::Long,
            ..settings.clone()
        };
        run(lab, &settings, runs)?;
        let Some(run) = runs.last_mut() else { continue };
        match measure_reply_memory(lab, &settings) {
            Ok(held) => held.describe(run),
            Err(e) => run.notes.push(format!("the server's memory for replies is unknown: {e}")),
        }
    }
    Ok(())
}

/// Memory that a server held for a client that had not read yet.
struct HeldReplyMemory {
    samples: Vec<MemorySample>,
    /// Bytes of the pipeline, and the number that the socket accepted.
    bytes: u64,
    accepted: u64,
}

/// A poll of the server.
#[derive(Debug, Clone, Copy)]
struct MemorySample {
    /// Time since the first poll, in nanoseconds.
    at_ns: u64,
    /// Bytes of replies that the server cannot send to the client yet, if it reports them (Redis 6.2 and later).
    replies_bytes: Option<u64>,
    /// The memory of all its clients in bytes, as of its last housekeeping.
    clients_bytes: Option<u64>,
    /// The server's own memory, if its process is on this machine.
    resident_bytes: Option<u64>,
}

impl HeldReplyMemory {
    fn describe(&self, run: &mut Run) {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else { return };
        let max = |of: fn(&MemorySample) -> Option<u64>| self.samples.iter().filter_map(of).max();
        let clients = max(|sample| sample.clients_bytes).zip(first.clients_bytes);
        let known = [
            ("reply_memory_bytes", max(|sample| sample.replies_bytes)),
            ("clients_memory_bytes", clients.map(|(max, before)| max.saturating_sub(before))),
        ];
        run.figures.extend(known.into_iter().filter_map(|(name, bytes)| Some((name.to_owned(), bytes? as f64))));
        run.series.push(self.series("replies_held_bytes", |sample| sample.replies_bytes));
        run.series.push(self.series("clients_memory_bytes", |sample| sample.clients_bytes));
        let resident = [first.resident_bytes, last.resident_bytes, max(|sample| sample.resident_bytes)];
        if let [Some(before_bytes), Some(after_bytes), Some(peak_bytes)] = resident {
            run.memory = Some(MemoryUse { before_bytes, after_bytes, peak_bytes });
        }
        run.notes.push("the server's memory was polled while a client wrote one pipeline and read nothing".to_owned());
        if self.accepted < self.bytes {
            run.notes.push(format!(
                "the socket took {} of the {} bytes of the pipeline before it was full",
                self.accepted, self.bytes
            ));
        }
    }

    fn series(&self, name: &str, of: fn(&MemorySample) -> Option<u64>) -> Series {
        let points = self.samples.iter().filter_map(|sample| Some((sample.at_ns, of(sample)? as f64)));
        let (t_ns, value) = points.unzip();
        Series { name: name.to_owned(), t_ns, value }
    }
}

/// Writes a pipeline as far as the socket accepts it, polls the server, then reads the replies and writes the rest.
fn measure_reply_memory(lab: &Lab<'_>, settings: &Settings) -> Result<HeldReplyMemory, LabError> {
    lab.step("pipeline: what the server holds for replies", 1.0)?;
    let mut key = ClaimedKey::claim(lab, &settings.target, settings.command)?;
    let command = encode(&settings.command.words(&key.name, ""));
    let address = &settings.target.generator_address;
    let mut control = ControlConnection::open(address)?;
    let id = control.execute(&["CLIENT", "ID"])?.number().unwrap_or(0).to_string();
    let failed = |e: io::Error| LabError::Failed(address.error_sentence(&e));
    control.stream().set_nonblocking(true).map_err(failed)?;
    let mut pipeline = LongPipeline {
        control,
        clock: lab.clock,
        block: command.repeat(COMMANDS_PER_WRITE),
        bytes: command.len() as u64 * settings.depth,
        written: 0,
        commands: settings.depth,
        replies: ReplyReceiver::Replies(Replies::new(None)),
    };
    let pid = settings.target.pid;
    let mut watch = MemoryMonitor { key: &mut key, id, pid, clock: lab.clock, samples: Vec::new(), begun: 0 };
    watch.sample()?;
    pipeline.fill(&mut watch)?.map_err(failed)?;
    let taken = pipeline.written;
    for _ in 0..MEMORY_POLLS {
        watch.sample()?;
        sleep_ns(POLL_PAUSE_NS);
    }
    pipeline.finish().map_err(failed)?;
    Ok(HeldReplyMemory { samples: watch.samples, bytes: pipeline.bytes, accepted: taken })
}

/// Polls the server over a connection of its own.
struct MemoryMonitor<'a> {
    key: &'a mut ClaimedKey,
    /// The server's id of the watched connection.
    id: String,
    pid: Option<u32>,
    clock: HostClock,
    samples: Vec<MemorySample>,
    /// The time of the first poll, in ticks.
    begun: u64,
}

impl MemoryMonitor<'_> {
    fn sample(&mut self) -> Result<(), LabError> {
        let control = &mut self.key.control;
        // An older server refuses the command; a dead server does not report its memory either.
        let client = match control.execute(&["CLIENT", "LIST", "ID", &self.id]) {
            Ok(ServerReply::Text(line)) => line,
            _ => String::new(),
        };
        let about = control.info("memory")?;
        let now = self.clock.ticks();
        if self.samples.is_empty() {
            self.begun = now;
        }
        self.samples.push(MemorySample {
            at_ns: self.clock.ns_between(self.begun, now).max(0) as u64,
            replies_bytes: field(&client, "omem"),
            clients_bytes: about.get("mem_clients_normal").and_then(|bytes| bytes.parse().ok()),
            resident_bytes: self.pid.map(|pid| memory::resident(pid).orders_bytes),
        });
        Ok(())
    }
}

/// Returns a number of a line of `CLIENT LIST`.
fn field(line: &str, name: &str) -> Option<u64> {
    let value = line.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value?.parse().ok()
}

/// A pipeline that is written and read over a non-blocking socket.
struct LongPipeline {
    control: ControlConnection,
    clock: HostClock,
    /// The commands that are written repeatedly.
    block: Vec<u8>,
    /// Bytes of the whole pipeline, and the number that the socket has accepted.
    bytes: u64,
    written: u64,
    commands: u64,
    replies: ReplyReceiver,
}

impl LongPipeline {
    /// Writes until everything is written or the socket is full, and polls the server while it waits for room.
    fn fill(&mut self, watch: &mut MemoryMonitor<'_>) -> Result<io::Result<()>, LabError> {
        let mut news = self.clock.ticks();
        while self.written < self.bytes && self.clock.ns_between(news, self.clock.ticks()) < FULL_TIMEOUT_NS {
            match self.write() {
                Ok(0) => {
                    watch.sample()?;
                    sleep_ns(POLL_PAUSE_NS / 2);
                }
                Ok(_) => news = self.clock.ticks(),
                Err(e) => return Ok(Err(e)),
            }
        }
        Ok(Ok(()))
    }

    /// Reads every reply, and writes the remaining commands.
    fn finish(&mut self) -> io::Result<()> {
        let mut news = self.clock.ticks();
        let mut buffer = vec![0; 64 << 10];
        while self.replies.received() < self.commands {
            let moved = self.write()? + self.read(&mut buffer)?;
            let now = self.clock.ticks();
            if moved > 0 {
                news = now;
            } else if self.clock.ns_between(news, now) > SERVER_TIMEOUT_NS {
                return Err(io::ErrorKind::TimedOut.into());
            } else {
                sleep_ns(RETRY_PAUSE_NS);
            }
        }
        Ok(())
    }

    /// Writes at most a block; returns the number of bytes that the socket accepted, 0 if it has no room.
    fn write(&mut self) -> io::Result<usize> {
        let offset = (self.written % self.block.len() as u64) as usize;
        let left = usize::try_from(self.bytes - self.written).unwrap_or(usize::MAX);
        let rest = &self.block[offset..];
        if left == 0 {
            return Ok(0);
        }
        let written = or_zero(self.control.stream().write(&rest[..rest.len().min(left)]))?;
        self.written += written as u64;
        Ok(written)
    }

    /// Reads; returns the number of bytes that the socket delivered, 0 if there are none now.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.control.stream().read(buffer) {
            Ok(0) => Err(super::load::closed()),
            read => {
                let bytes = or_zero(read)?;
                self.replies.receive(&buffer[..bytes])?;
                Ok(bytes)
            }
        }
    }
}

fn or_zero(moved: io::Result<usize>) -> io::Result<usize> {
    match moved {
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_clients_memory_is_in_its_line() {
        let line = "id=7 addr=127.0.0.1:5 name= obl=16384 oll=12 omem=205824 tot-mem=240000 user=default\n";
        for (name, value) in [("omem", Some(205_824)), ("tot-mem", Some(240_000)), ("mem", None), ("user", None)] {
            assert_eq!(field(line, name), value, "{name}");
        }
    }
}

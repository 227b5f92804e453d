//! Drop copies as topics: the reports of an OMS to its sessions, published on a bus.
//!
//! ```text
//!   history ──> filter ──> topic at URL     each a thread, which reads the history from its files
//!                  └────── JOURNAL/copies/TOPIC-SUM: the journal, the place up to which all was published a while ago,
//!                          the CRC-32C of the report before it, and the place behind the last message
//! ```
//! Each message is a report, as its kind states, followed by a [`CopyTrailer`]: the report's place in the history, and
//! the place behind the previous message. After a restart of the OMS a thread resumes some way before the last place:
//! delivery is at least once, and a subscriber that keeps the last place seen can drop duplicates and detect gaps.
//!
//! After a loss of power, other reports may have the places of the lost ones. So the first message of each process is
//! a [`FrameKind::CopyRewind`]: a trailer alone, from whose place on earlier messages no longer count. If the history
//! has another report before the noted place, its end was lost or the history is a new one: the problem is logged, and
//! the whole day is published again behind such a message. A broker that refuses messages is retried for ever.

use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::json;
use tickpath_bus::{Policy, TopicConfig};
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_log::{LogOpenError, LogPath};
use tickpath_oms_protocol::{CopyTrailer, FrameKind};
use tickpath_oms_runtime::drop_copy::{DropCopyReader, DropCopyStart};
use zerocopy::IntoBytes;

use super::log_lines::LogWriter;
use crate::settings::{CopyTopic, Settings, Users};

const MAX_TURN_FRAMES: usize = 1024;
/// Pause between two reads of a history without new reports, in nanoseconds.
const PAUSE_NS: u64 = 1_000_000;
/// Time between two notes of the progress, in nanoseconds.
const SAVE_INTERVAL_NS: i64 = 1_000_000_000;
/// Number of pauses between two attempts to reach a broker.
const RETRY_PAUSES: u32 = 1_000;

/// Threads that publish drop copies on topics, one a topic; they end when this value is dropped.
pub struct CopyTopicThreads {
    is_open: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Progress of a topic: the place in the history up to which all is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CopyProgress {
    journal: u64,
    position: u64,
    /// The CRC-32C of the report before that place; zero if there is none.
    last_crc: u32,
    /// The place behind the last published message: later reports before `position` are not in this drop copy.
    from: u64,
}

struct CopyPublisher {
    settings: CopyTopic,
    journal: PathBuf,
    users: PathBuf,
    state: PathBuf,
    clock: HostClock,
    is_open: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    lines: LogWriter,
    /// The last progress noted, even if its file could not be written.
    saved: Option<CopyProgress>,
    /// Set once the [`FrameKind::CopyRewind`] message of this process is known to have left the process.
    has_begun: bool,
    last_problem: String,
}

impl CopyTopicThreads {
    /// Starts a thread for each topic in the settings. The threads wait until the OMS is open.
    pub fn start(settings: &Settings, lines: &LogWriter, clock: &HostClock) -> io::Result<Self> {
        let mut started = Self { is_open: Arc::default(), stop: Arc::default(), threads: Vec::new() };
        for topic in &settings.drop_copies {
            let name = format!("{}-{:08x}", topic.topic, crc32c::crc32c(topic.url.as_bytes()));
            let mut publisher = CopyPublisher {
                settings: topic.clone(),
                journal: settings.journal.clone(),
                users: settings.users_file.clone(),
                state: settings.journal.join("copies").join(name),
                clock: *clock,
                is_open: started.is_open.clone(),
                stop: started.stop.clone(),
                lines: lines.clone(),
                saved: None,
                has_begun: false,
                last_problem: String::new(),
            };
            let thread = std::thread::Builder::new().name("oms-topic".to_owned()).spawn(move || publisher.run())?;
            started.threads.push(thread);
        }
        Ok(started)
    }

    /// Lets the threads begin, once the OMS is open: before that, the history may still be set aside or cut.
    pub fn start_publishing(&self) {
        self.is_open.store(true, Ordering::Release);
    }
}

impl Drop for CopyTopicThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl CopyPublisher {
    fn run(&mut self) {
        // Pairs with the release in `start_publishing`.
        while !self.is_open.load(Ordering::Acquire) {
            if self.is_stopping() {
                return;
            }
            sleep_ns(PAUSE_NS);
        }
        while !self.is_stopping() {
            let Err(why) = self.publish() else { return };
            let why = text_with_causes(&*why);
            self.report_problem(&format!("{why}; the OMS tries again, and leaves no report out"));
            for _ in 0..RETRY_PAUSES {
                if self.is_stopping() {
                    return;
                }
                sleep_ns(PAUSE_NS);
            }
        }
    }

    /// Reports a problem, unless it is the same as the last one.
    fn report_problem(&mut self, why: &str) {
        if why != self.last_problem {
            let CopyTopic { url, topic, .. } = &self.settings;
            let fields = [("url", json!(url)), ("topic", json!(topic)), ("why", json!(why))];
            self.lines.write_event("drop_copy", &fields, &format!("drop copy on '{topic}': {why}"));
            self.last_problem = why.to_owned();
        }
    }

    /// Publishes new reports from the noted place on, until the thread is stopped.
    fn publish(&mut self) -> Result<(), Box<dyn Error>> {
        let Some((mut copy, mut progress)) = self.open()? else { return Ok(()) };
        let connection = tickpath_bus::connect(&self.settings.url)?;
        let policies = connection.capabilities().policies;
        let policy = policies.iter().copied().find(|&policy| policy == Policy::Keep).unwrap_or(policies[0]);
        let mut publisher = connection.publisher(&self.settings.topic, &TopicConfig::new(policy))?;
        let mut filter = self.settings.filter.with(&Users::read(&self.users)?);
        let journal = copy.journal();
        if !self.has_begun {
            let CopyProgress { position: place, from, .. } = progress;
            let trailer = CopyTrailer { journal, place, from, ..CopyTrailer::default() };
            publisher.publish(self.clock.ticks(), FrameKind::CopyRewind.code(), trailer.as_bytes())?;
        }
        // Progress is noted one interval late: by then every message up to it has left this process.
        let (mut noted_at, mut ripe) = (self.clock.ticks(), progress);
        while !self.is_stopping() {
            let (mut failed, before) = (None, copy.next());
            copy.read_frames(MAX_TURN_FRAMES, |place, report, _| {
                let last_crc = crc32c::crc32c(report.message);
                progress = CopyProgress { journal, position: place + 1, last_crc, ..progress };
                if filter.matches(report) {
                    let trailer = CopyTrailer {
                        journal,
                        place,
                        from: progress.from,
                        session_number: report.number,
                        session: report.session,
                        reserved: [0; 6],
                    };
                    let payload = [report.message, trailer.as_bytes()].concat();
                    failed = publisher.publish(report.stamp, report.kind, &payload).err();
                    progress.from = place + 1;
                }
                failed.is_none()
            })?;
            if let Some(why) = failed {
                return Err(why.into());
            }
            if self.clock.ns_between(noted_at, self.clock.ticks()) > SAVE_INTERVAL_NS {
                self.save_progress(ripe);
                self.has_begun = true;
                (noted_at, ripe) = (self.clock.ticks(), progress);
                filter = self.settings.filter.with(&Users::read(&self.users)?);
            }
            if copy.next() == before {
                sleep_ns(PAUSE_NS);
            }
        }
        Ok(())
    }

    /// Waits for the history, and opens it where this topic stands; none if the thread is stopped first.
    fn open(&mut self) -> Result<Option<(DropCopyReader, CopyProgress)>, LogOpenError> {
        let journal = LogPath::folder(&self.journal);
        while !self.is_stopping() {
            let copy = match DropCopyReader::open(&journal, DropCopyStart::Day) {
                Ok(Some(copy)) => copy,
                Ok(None) | Err(LogOpenError::NotFound(_)) => {
                    sleep_ns(PAUSE_NS);
                    continue;
                }
                Err(e) => return Err(e),
            };
            let day = CopyProgress { journal: copy.journal(), position: copy.next(), last_crc: 0, from: copy.next() };
            let noted = self.read_progress();
            if let Some(noted) = noted.filter(|noted| noted.journal == day.journal) {
                let start = DropCopyStart::Place { place: noted.position, last_sum: noted.last_crc };
                let Some(behind) = DropCopyReader::open(&journal, start)? else {
                    sleep_ns(PAUSE_NS);
                    continue;
                };
                if behind.next() == noted.position {
                    return Ok(Some((behind, noted)));
                }
            }
            if let Some(noted) = noted {
                let (before, from) = (noted.position, day.position);
                self.report_problem(&format!(
                    "the history does not hold what was published before position {before}: its end was lost, its day was \
                     removed, or the folder has another journal; the OMS publishes the whole day again, from {from} on"
                ));
            }
            // Noted at once: the day may end before the broker is reachable.
            self.has_begun = false;
            self.save_progress(day);
            return Ok(Some((copy, day)));
        }
        Ok(None)
    }

    /// Returns the noted progress. An unreadable note counts as none: more duplicates follow.
    fn read_progress(&self) -> Option<CopyProgress> {
        if self.saved.is_some() {
            return self.saved;
        }
        let text = fs::read_to_string(&self.state).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        let mut number = || numbers.next().and_then(Result::ok);
        let (journal, position, last_crc, from) = (number()?, number()?, u32::try_from(number()?).ok()?, number()?);
        Some(CopyProgress { journal, position, last_crc, from })
    }

    /// Notes the published progress. Without room for the note, more duplicates follow after a restart of the OMS.
    fn save_progress(&mut self, progress: CopyProgress) {
        if self.saved.replace(progress) == Some(progress) {
            return;
        }
        if let Err(why) = self.write(progress) {
            let file = self.state.display();
            self.report_problem(&format!(
                "the progress cannot be written to {file}: {why}; publishing continues, and the next start publishes \
                 more of the day again. Make room there, or let the OMS's user write the file"
            ));
        }
    }

    fn write(&self, progress: CopyProgress) -> io::Result<()> {
        let CopyProgress { journal, position, last_crc, from } = progress;
        let fresh = self.state.with_added_extension("new");
        fs::create_dir_all(self.state.parent().unwrap_or(&self.journal))?;
        fs::write(&fresh, format!("{journal} {position} {last_crc} {from}\n"))?;
        fs::rename(fresh, &self.state)
    }

    fn is_stopping(&self) -> bool {
        // Pairs with the release in `drop`.
        self.stop.load(Ordering::Acquire)
    }
}

fn text_with_causes(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

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
//! a [`Kind::CopyAgain`]: a trailer alone, from whose place on earlier messages no longer count. If the history has
//! another report before the noted place, its end was lost or the history is a new one: the problem is logged, and the
//! whole day is published again behind such a message. A broker that refuses messages is retried for ever.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::json;
use tickpath_bus::{Policy, TopicConfig};
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_log::Place;
use tickpath_oms_protocol::{CopyTrailer, Kind};
use tickpath_oms_runtime::copy::{Copy, CopyFrom};
use tickpath_oms_server::Lines;
use tickpath_oms_server::settings::{CopyTopic, Settings, Users};
use zerocopy::IntoBytes;

/// Max history frames read per turn.
const TURN: usize = 1024;
const PAUSE_NS: u64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// Number of pauses between two attempts to reach a broker.
const PATIENCE: u32 = 1_000;

/// The publishing threads, which end when this value is dropped.
pub struct Topics {
    is_open: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Progress of a topic: the place in the history up to which all is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stand {
    journal: u64,
    place: u64,
    /// The CRC-32C of the report before that place; zero if there is none.
    last_sum: u32,
    /// The place behind the last published message: the reports from there to `place` are not part of this drop copy.
    from: u64,
}

/// A topic with the files that its thread reads and writes.
struct Topic {
    settings: CopyTopic,
    journal: PathBuf,
    users: PathBuf,
    state: PathBuf,
    clock: HostClock,
    is_open: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    lines: Lines,
    /// The last progress noted, even if its file could not be written.
    noted: Option<Stand>,
    /// Set once the [`Kind::CopyAgain`] message of this process is known to have left the process.
    has_begun: bool,
    /// The last problem reported.
    told: String,
}

impl Topics {
    /// Starts a thread for each topic in the settings. The threads wait until the OMS is open.
    pub fn start(settings: &Settings, lines: &Lines, clock: &HostClock) -> anyhow::Result<Self> {
        let mut topics = Self { is_open: Arc::default(), stop: Arc::default(), threads: Vec::new() };
        for one in &settings.drop_copies {
            let name = format!("{}-{:08x}", one.topic, crc32c::crc32c(one.url.as_bytes()));
            let mut topic = Topic {
                settings: one.clone(),
                journal: settings.journal.clone(),
                users: settings.users_file.clone(),
                state: settings.journal.join("copies").join(name),
                clock: *clock,
                is_open: topics.is_open.clone(),
                stop: topics.stop.clone(),
                lines: lines.clone(),
                noted: None,
                has_begun: false,
                told: String::new(),
            };
            let thread = std::thread::Builder::new().name("oms-topic".to_owned()).spawn(move || topic.run())?;
            topics.threads.push(thread);
        }
        Ok(topics)
    }

    /// Lets the threads begin, once the OMS is open: before that, the history may still be set aside or cut.
    pub fn begin(&self) {
        self.is_open.store(true, Ordering::Release);
    }
}

impl Drop for Topics {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Topic {
    /// Publishes until the thread is stopped; failures are retried.
    fn run(&mut self) {
        // Pairs with the release in `begin`.
        while !self.is_open.load(Ordering::Acquire) {
            if self.is_over() {
                return;
            }
            sleep_ns(PAUSE_NS);
        }
        while !self.is_over() {
            let Err(why) = self.publish() else { return };
            self.tell(&format!("{why:#}; it is tried again, and nothing is left out"));
            for _ in 0..PATIENCE {
                if self.is_over() {
                    return;
                }
                sleep_ns(PAUSE_NS);
            }
        }
    }

    /// Reports a problem, unless it is the same as the last one.
    fn tell(&mut self, why: &str) {
        if why != self.told {
            let CopyTopic { url, topic, .. } = &self.settings;
            let said = format!("drop copy on '{topic}': {why}");
            self.lines.say("drop_copy", &[("url", json!(url)), ("topic", json!(topic)), ("why", json!(why))], &said);
            self.told = why.to_owned();
        }
    }

    /// Publishes new reports from the noted place on, until the thread is stopped.
    fn publish(&mut self) -> anyhow::Result<()> {
        let Some((mut copy, mut stand)) = self.open()? else { return Ok(()) };
        let connection = tickpath_bus::connect(&self.settings.url)?;
        let policies = connection.capabilities().policies;
        let policy = policies.iter().copied().find(|&policy| policy == Policy::Keep).unwrap_or(policies[0]);
        let mut publisher = connection.publisher(&self.settings.topic, &TopicConfig::new(policy))?;
        let mut takes = self.settings.filter.with(&Users::read(&self.users)?);
        let journal = copy.journal();
        if !self.has_begun {
            let Stand { place, from, .. } = stand;
            let trailer = CopyTrailer { journal, place, from, ..CopyTrailer::default() };
            publisher.publish(self.clock.ticks(), Kind::CopyAgain.code(), trailer.as_bytes())?;
        }
        // Progress is noted one interval late: by then every message up to it has left this process.
        let (mut noted_at, mut ripe) = (self.clock.ticks(), stand);
        while !self.is_over() {
            let (mut failed, before) = (None, copy.next());
            copy.turn(TURN, |place, told| {
                stand = Stand { journal, place: place + 1, last_sum: crc32c::crc32c(told.message), ..stand };
                if takes.takes(told) {
                    let trailer = CopyTrailer {
                        journal,
                        place,
                        from: stand.from,
                        session_number: told.number,
                        session: told.session,
                        reserved: [0; 6],
                    };
                    let payload = [told.message, trailer.as_bytes()].concat();
                    failed = publisher.publish(told.stamp, told.kind, &payload).err();
                    stand.from = place + 1;
                }
                failed.is_none()
            })?;
            if let Some(why) = failed {
                return Err(why.into());
            }
            if self.clock.ns_between(noted_at, self.clock.ticks()) > SECOND_NS {
                self.note(ripe);
                self.has_begun = true;
                (noted_at, ripe) = (self.clock.ticks(), stand);
                takes = self.settings.filter.with(&Users::read(&self.users)?);
            }
            if copy.next() == before {
                sleep_ns(PAUSE_NS);
            }
        }
        Ok(())
    }

    /// Waits for the history, and opens it where this topic stands; none if the thread is stopped first.
    fn open(&mut self) -> anyhow::Result<Option<(Copy, Stand)>> {
        let place = Place::folder(&self.journal);
        while !self.is_over() {
            let copy = match Copy::open(&place, CopyFrom::Day) {
                Ok(Some(copy)) => copy,
                Ok(None) | Err(tickpath_log::OpenError::NotFound(_)) => {
                    sleep_ns(PAUSE_NS);
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            let day = Stand { journal: copy.journal(), place: copy.next(), last_sum: 0, from: copy.next() };
            let noted = self.noted();
            if let Some(noted) = noted.filter(|noted| noted.journal == day.journal) {
                let Stand { place: from, last_sum, .. } = noted;
                let Some(behind) = Copy::open(&place, CopyFrom::Place { place: from, last_sum })? else {
                    sleep_ns(PAUSE_NS);
                    continue;
                };
                if behind.next() == from {
                    return Ok(Some((behind, noted)));
                }
            }
            if let Some(noted) = noted {
                self.tell_again(noted, day);
            }
            // Noted at once: the day may end before the broker is reachable.
            self.has_begun = false;
            self.note(day);
            return Ok(Some((copy, day)));
        }
        Ok(None)
    }

    /// Reports that the history is not the one that was published.
    fn tell_again(&mut self, noted: Stand, day: Stand) {
        let (before, from) = (noted.place, day.place);
        self.tell(&format!(
            "the history does not hold what was published before place {before}, for its end was lost, its day is gone or \
             another journal lies there; all of its day comes again, from place {from} on"
        ));
    }

    /// Returns the noted progress. An unreadable note, as a loss of power may leave it, counts as none: more
    /// duplicates follow.
    fn noted(&self) -> Option<Stand> {
        if self.noted.is_some() {
            return self.noted;
        }
        let text = fs::read_to_string(&self.state).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        let mut number = || numbers.next().and_then(Result::ok);
        let (journal, place, sum, from) = (number()?, number()?, number()?, number()?);
        Some(Stand { journal, place, last_sum: u32::try_from(sum).ok()?, from })
    }

    /// Notes the published progress. Without room for the note, more duplicates follow after a restart of the OMS.
    fn note(&mut self, stand: Stand) {
        if self.noted.replace(stand) == Some(stand) {
            return;
        }
        if let Err(why) = self.write(stand) {
            let file = self.state.display();
            self.tell(&format!(
                "how far it has come cannot be noted in {file}: {why}; it goes on, and the next start publishes more of the \
                 day again. Make room there, or let the OMS's user write it"
            ));
        }
    }

    fn write(&self, Stand { journal, place, last_sum, from }: Stand) -> io::Result<()> {
        // Appends the suffix instead of replacing an extension: a topic's name may contain dots.
        let mut fresh = self.state.clone().into_os_string();
        fresh.push(".new");
        fs::create_dir_all(self.state.parent().unwrap_or(&self.journal))?;
        fs::write(&fresh, format!("{journal} {place} {last_sum} {from}\n"))?;
        fs::rename(fresh, &self.state)
    }

    fn is_over(&self) -> bool {
        // Pairs with the release in `drop`.
        self.stop.load(Ordering::Acquire)
    }
}

//! Drop copies as topics: what an OMS tells its sessions, published on a bus.
//!
//! ```text
//!   history ──> filter ──> topic at URL     each a thread, which reads the history from its files
//!                  └────── JOURNAL/copies/TOPIC-SUM: the journal, the place up to which all was published a while ago,
//!                          the CRC-32C of the report before it, and the place behind the last message
//! ```
//! A message is a report, as its kind says, and behind it a [`CopyTrailer`]: its place among all that was said, and the place
//! behind the message before it. After the end of the OMS a thread goes on some way before the last place: a message comes at
//! least once, and who keeps the last place that it has seen drops doubles and sees holes.
//!
//! After a loss of power other reports may have the places of those that were lost. So the first message of each process is
//! a [`Kind::CopyAgain`]: a trailer alone, from whose place on nothing of before counts. If the history has another report
//! before the place that was noted, its end was lost or it is another one: the log says so, and all of the day comes again,
//! behind the same message. A broker that takes nothing is tried again for ever.

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
use tickpath_oms::copy::{Copy, CopyFrom};
use tickpath_server::Lines;
use tickpath_server::settings::{CopyTopic, Settings, Users};
use tickpath_session::{CopyTrailer, Kind};
use zerocopy::IntoBytes;

/// Frames of the history that one turn looks at.
const TURN: usize = 1024;
const PAUSE_NS: u64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// Pauses between two attempts to reach a broker.
const PATIENCE: u32 = 1_000;

/// The threads, which end with this.
pub struct Topics {
    is_open: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Up to where all was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stand {
    journal: u64,
    place: u64,
    /// The CRC-32C of the report before that place; zero if there is none.
    last_sum: u32,
    /// The place behind the last message: what lies between the two is not in this drop copy.
    from: u64,
}

/// One topic.
struct Topic {
    settings: CopyTopic,
    journal: PathBuf,
    users: PathBuf,
    state: PathBuf,
    clock: HostClock,
    is_open: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    lines: Lines,
    /// What is noted, whether or not there is room for the note.
    noted: Option<Stand>,
    /// It was said that what comes came before, and has left this process.
    has_begun: bool,
    /// What was told last.
    told: String,
}

impl Topics {
    /// Starts a thread for each topic that the settings name. It waits until the OMS is open.
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

    /// The OMS is open: what lay there before may have been set aside, or cut.
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
    /// Publishes until it is told to stop; what fails is tried again.
    fn run(&mut self) {
        // Pairs with the release of who opens it.
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

    /// Says what fails, when it is news.
    fn tell(&mut self, why: &str) {
        if why != self.told {
            let CopyTopic { url, topic, .. } = &self.settings;
            let said = format!("drop copy on '{topic}': {why}");
            self.lines.say("drop_copy", &[("url", json!(url)), ("topic", json!(topic)), ("why", json!(why))], &said);
            self.told = why.to_owned();
        }
    }

    /// Publishes what is new, from the place that was noted on, until it is told to stop.
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
        // What is noted is a while old: by then whatever was handed over has left this process.
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

    /// The history, once there is one, from where this topic stands; none if it is over.
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
            // From now on it is this: the day may end before the broker is there.
            self.has_begun = false;
            self.note(day);
            return Ok(Some((copy, day)));
        }
        Ok(None)
    }

    /// Says that the history is not the one that was published.
    fn tell_again(&mut self, noted: Stand, day: Stand) {
        let (before, from) = (noted.place, day.place);
        self.tell(&format!(
            "the history does not hold what was published before place {before}, for its end was lost, its day is gone or \
             another journal lies there; all of its day comes again, from place {from} on"
        ));
    }

    /// What cannot be read, or is no note, as a loss of power may leave it, is as good as none: more comes twice then.
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

    /// Notes how far all is published. Where there is no room for the note, more comes twice after the end of the OMS.
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
        // Beside it, and not in place of what is behind the last dot: a topic's name may have some.
        let mut fresh = self.state.clone().into_os_string();
        fresh.push(".new");
        fs::create_dir_all(self.state.parent().unwrap_or(&self.journal))?;
        fs::write(&fresh, format!("{journal} {place} {last_sum} {from}\n"))?;
        fs::rename(fresh, &self.state)
    }

    fn is_over(&self) -> bool {
        // Pairs with the release of who ends it.
        self.stop.load(Ordering::Acquire)
    }
}

//! The answer to the peer's ResendRequests: application messages again, and a gap fill for each run of other numbers.
//!
//! A resend is paced: it pauses while the unsent output is long, so that heartbeats, new messages and other sessions
//! continue. It ends with the last message that was sent before the request, so that no gap fill covers a later one. A
//! stored message that is damaged is not resent: a gap fill stands for it, and an alarm is raised.

use crate::check_sum::{check_sum, check_sum_digits};
use crate::field_table::{DataTags, FieldTable, Message};
use crate::soh::SOH;
use crate::tags;

use super::config::{ResendPolicy, SessionConfig};
use super::events::SessionIo;
use super::message_kind::{MessageKind, is_stale_type};
use super::outgoing::Outgoing;

/// Max numbers of a call, since those that are gap-filled lengthen no output.
const MAX_NUMBERS: usize = 8_192;
/// Length of `10=000` and its delimiter.
const CHECK_SUM_BYTES: usize = 7;

/// Resend to the peer.
pub(crate) struct Resend {
    range: Option<ResendRange>,
    policy: ResendPolicy,
    begin_string: &'static str,
    /// Length of the unsent output above which the resend pauses, in bytes.
    max_output: usize,
    table: FieldTable,
}

/// Numbers that are still to be resent.
#[derive(Debug, Clone, Copy)]
struct ResendRange {
    next: u64,
    /// Last number.
    end: u64,
    /// Begin of the last request: the number that the peer expects next. A gap fill that began before it would be ignored.
    requested: u64,
    /// Begin of a run of numbers before `next` for which a gap fill is due.
    gap_begin: Option<u64>,
    /// An alarm about a stored message was raised.
    has_alarm: bool,
}

/// Outcome of a number.
enum Outcome {
    Sent,
    Left,
    Damaged,
}

impl Resend {
    /// Makes the state of a session from which nothing is requested.
    pub fn new(config: &SessionConfig) -> Self {
        Self {
            range: None,
            policy: config.resend,
            begin_string: config.begin_string.text(),
            max_output: config.limits.resend_output,
            table: FieldTable::new(),
        }
    }

    /// Ends the resend.
    pub fn clear(&mut self) {
        self.range = None;
    }

    /// Returns whether numbers are still to be resent.
    pub fn is_active(&self) -> bool {
        self.range.is_some()
    }

    /// Adds a requested range, both ends included. If a resend is active, it continues with the lower begin and the higher
    /// end.
    pub fn request(&mut self, begin: u64, end: u64) {
        self.range = Some(match self.range {
            None => ResendRange { next: begin, end, requested: begin, gap_begin: None, has_alarm: false },
            Some(active) => ResendRange {
                next: active.gap_begin.unwrap_or(active.next).min(begin),
                end: active.end.max(end),
                requested: begin,
                gap_begin: None,
                has_alarm: active.has_alarm,
            },
        });
    }

    /// Writes as much of the resend as the output has room for.
    pub fn write(&mut self, data_tags: &DataTags, outgoing: &mut Outgoing, now_ns: u64, io: &mut SessionIo<'_>) {
        for _ in 0..MAX_NUMBERS {
            let Some(range) = self.range else { return };
            if io.out.len() >= self.max_output {
                return;
            }
            if range.next > range.end {
                self.range = None;
                if let Some(begin) = range.gap_begin {
                    outgoing.write_gap_fill(begin, range.end + 1, now_ns, io.out);
                }
                return;
            }
            self.write_number(range, data_tags, outgoing, now_ns, io);
        }
    }

    /// Resends the next number of a range, or adds it to the run for which a gap fill is due.
    fn write_number(
        &mut self,
        range: ResendRange,
        data_tags: &DataTags,
        outgoing: &mut Outgoing,
        now_ns: u64,
        io: &mut SessionIo<'_>,
    ) {
        let number = range.next;
        let (table, policy, begin_string) = (&mut self.table, self.policy, self.begin_string);
        let gap_begin = range.gap_begin.filter(|_| number != range.requested);
        if let Some(begin) = range.gap_begin
            && gap_begin.is_none()
        {
            outgoing.write_gap_fill(begin, number, now_ns, io.out);
        }
        let out = &mut *io.out;
        let mut outcome = Outcome::Left;
        let read = io.store.read(number, &mut |bytes: &[u8]| {
            let Some(message) = stored_message(bytes, number, begin_string, table, data_tags) else {
                outcome = if bytes.is_empty() { Outcome::Left } else { Outcome::Damaged };
                return;
            };
            if is_resent(&message, policy) {
                if let Some(begin) = gap_begin {
                    outgoing.write_gap_fill(begin, number, now_ns, out);
                }
                outgoing.write_resend(&message, now_ns, out);
                outcome = Outcome::Sent;
            }
        });
        let fault = match (&read, &outcome) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(_), Outcome::Damaged) => Some("it is damaged; check the disk".to_owned()),
            (Ok(_), Outcome::Sent | Outcome::Left) => None,
        };
        if let Some(fault) = &fault
            && !range.has_alarm
        {
            io.alarm(&format!("message {number} cannot be resent, a gap fill stands for it: {fault}"));
        }
        let gap_begin = match outcome {
            Outcome::Sent => None,
            Outcome::Left | Outcome::Damaged => gap_begin.or(Some(number)),
        };
        let has_alarm = range.has_alarm || fault.is_some();
        self.range = Some(ResendRange { next: number + 1, gap_begin, has_alarm, ..range });
    }
}

/// Reads a stored message. `None` if it is not the message of this number, or is damaged.
fn stored_message<'a>(
    bytes: &'a [u8],
    number: u64,
    begin_string: &str,
    table: &'a mut FieldTable,
    data_tags: &DataTags,
) -> Option<Message<'a>> {
    let (summed, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECK_SUM_BYTES)?)?;
    let [a, b, c] = check_sum_digits(check_sum(summed));
    if *sum != [b'1', b'0', b'=', a, b, c, SOH] {
        return None;
    }
    let message = table.read(bytes, data_tags).ok()?;
    let is_right = message.get(tags::BEGIN_STRING) == Some(begin_string.as_bytes())
        && message.sequence_number() == Some(number)
        && !message.msg_type().is_empty();
    is_right.then_some(message)
}

/// Returns whether a message is repeated, and not left to a gap fill.
fn is_resent(message: &Message<'_>, policy: ResendPolicy) -> bool {
    let msg_type = message.msg_type();
    let is_application = MessageKind::of(msg_type) == MessageKind::Application;
    is_application
        && match policy {
            ResendPolicy::All => true,
            ResendPolicy::GapFillOrders => !is_stale_type(msg_type),
        }
}

#[cfg(test)]
mod tests {
    use crate::message_store::{MemoryStore, MessageStore, StoreError};
    use crate::session::config::{BeginString, Role};
    use crate::session::events::{AppAnswer, SessionEvent};
    use crate::session::sequence_numbers::SequenceNumbers;

    use super::*;

    /// A sender, its store, and what it has written.
    struct Bench {
        resend: Resend,
        outgoing: Outgoing,
        store: MemoryStore,
        out: Vec<u8>,
        alarms: Vec<String>,
    }

    impl Bench {
        /// Makes a sender of one message a letter: `h` is a Heartbeat, `D` an order, `8` a report, `-` is lost.
        fn new(messages: &str, change: impl FnOnce(&mut SessionConfig)) -> Self {
            let mut config = SessionConfig::new(Role::Acceptor, BeginString::Fix44, "US", "THEM");
            change(&mut config);
            let (resend, outgoing) = (Resend::new(&config), Outgoing::new(&config, 1));
            let store = MemoryStore::new(1_000, 1 << 20);
            let mut bench = Self { resend, outgoing, store, out: Vec::new(), alarms: Vec::new() };
            for letter in messages.chars() {
                bench.send(letter);
            }
            bench.out.clear();
            bench
        }

        fn send(&mut self, letter: char) {
            let Self { outgoing, store, out, .. } = self;
            let number = outgoing.next();
            let mut events = |_: SessionEvent<'_>| AppAnswer::Taken;
            let mut io = SessionIo { out, store, events: &mut events };
            let sent = match letter {
                'h' => outgoing.send_heartbeat(None, 0, &mut io),
                letter => outgoing.send_application(&[letter as u8], 0, &mut io, |body| body.text(tags::SYMBOL, "X")),
            };
            sent.unwrap();
            if letter == '-' {
                store.append(number, b"").unwrap();
            }
        }

        /// Writes until the resend ends or pauses, and returns the messages: numbers, with `>` and the next one for a gap
        /// fill.
        fn write(&mut self) -> Vec<String> {
            let Self { resend, outgoing, store, out, alarms } = self;
            let mut events = |event: SessionEvent<'_>| {
                if let SessionEvent::Alarm(text) = event {
                    alarms.push(text.to_owned());
                }
                AppAnswer::Taken
            };
            let mut io = SessionIo { out, store, events: &mut events };
            resend.write(&DataTags::standard(), outgoing, 1_000_000_000, &mut io);
            let text = String::from_utf8(std::mem::take(out)).unwrap().replace('\x01', "|");
            text.split_inclusive("|10=").filter_map(|message| message.split("8=FIX.4.4|").nth(1)).map(shown).collect()
        }
    }

    /// Returns the number of a message, with the next one if it is a gap fill.
    fn shown(message: &str) -> String {
        let value = |tag: &str| {
            let (_, behind) = message.split_once(&format!("|{tag}=")).expect("the field is there");
            behind.split('|').next().unwrap().to_owned()
        };
        assert_eq!(value("43"), "Y", "in {message}");
        match value("35").as_str() {
            "4" => format!("{}>{}", value("34"), value("36")),
            _ => value("34"),
        }
    }

    #[test]
    fn runs_of_other_numbers_are_gap_filled_from_their_begin() {
        for (messages, begin, end, expected) in [
            ("888", 1, 3, vec!["1", "2", "3"]),
            ("hhh", 1, 3, vec!["1>4"]),
            ("h88h-8hh", 1, 8, vec!["1>2", "2", "3", "4>6", "6", "7>9"]),
            ("h88h-8hh", 3, 5, vec!["3", "4>6"]),
        ] {
            let mut bench = Bench::new(messages, |_| {});
            bench.resend.request(begin, end);
            assert_eq!(bench.write(), expected, "{begin} to {end} of {messages}");
            assert!(!bench.resend.is_active() && bench.alarms.is_empty());
        }
    }

    #[test]
    fn a_message_is_resent_with_both_times() {
        let mut bench = Bench::new("8", |config| {
            config.sub_ids.sender_sub = Some("DESK".to_owned());
            config.sub_ids.target_location = Some("TPE".to_owned());
        });
        bench.resend.request(1, 1);
        let Bench { resend, outgoing, store, out, .. } = &mut bench;
        let mut events = |_: SessionEvent<'_>| AppAnswer::Taken;
        let mut io = SessionIo { out, store, events: &mut events };
        resend.write(&DataTags::standard(), outgoing, 1_000_000_000, &mut io);
        let text = String::from_utf8(out.clone()).unwrap().replace('\x01', "|");
        let (_, body) = text.split_once("|35=").unwrap();
        assert_eq!(
            &body[..body.len() - CHECK_SUM_BYTES],
            "8|34=1|43=Y|49=US|50=DESK|52=19700101-00:00:01.000|56=THEM|122=19700101-00:00:00.000|143=TPE|55=X|"
        );
    }

    #[test]
    fn stale_orders_are_gap_filled_if_the_policy_says_so() {
        let mut bench = Bench::new("D8F8", |config| config.resend = ResendPolicy::GapFillOrders);
        bench.resend.request(1, 4);
        assert_eq!(bench.write(), ["1>2", "2", "3>4", "4"]);
    }

    #[test]
    fn a_resend_pauses_while_the_output_is_long() {
        let mut bench = Bench::new("88888", |config| config.limits.resend_output = 150);
        bench.resend.request(1, 5);
        let mut written = Vec::new();
        while bench.resend.is_active() {
            let part = bench.write();
            assert!(part.len() <= 2, "{part:?}");
            written.extend(part);
        }
        assert_eq!(written, ["1", "2", "3", "4", "5"]);
    }

    #[test]
    fn a_second_request_widens_the_first() {
        let mut bench = Bench::new("8888h", |config| config.limits.resend_output = 1);
        bench.resend.request(2, 3);
        assert_eq!(bench.write(), ["2"]);
        bench.resend.request(1, 5);
        let written: Vec<String> = (0..5).flat_map(|_| bench.write()).collect();
        assert_eq!(written, ["1", "2", "3", "4", "5>6"]);
        assert!(!bench.resend.is_active());
    }

    #[test]
    fn a_gap_fill_begins_where_the_peer_expects_it() {
        let mut bench = Bench::new("8hhh8", |config| config.limits.resend_output = 1);
        bench.resend.request(1, 5);
        assert_eq!(bench.write(), ["1"]);
        bench.resend.request(3, 5);
        assert_eq!((bench.write(), bench.write()), (vec!["2>3".to_owned()], vec!["3>5".to_owned(), "5".to_owned()]));
    }

    /// A store that returns another text than it was given.
    struct DamagedStore;

    impl MessageStore for DamagedStore {
        fn append(&mut self, _: u64, _: &[u8]) -> Result<(), StoreError> {
            Ok(())
        }

        fn set_next_in(&mut self, _: u64) -> Result<(), StoreError> {
            Ok(())
        }

        fn read(&mut self, number: u64, take: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
            match number {
                1 => take(b"8=FIX.4.4\x019=10\x0135=8\x0134=7\x0110=000\x01"),
                2 => take(b"garbage"),
                3 => take(b""),
                _ => return Err(StoreError("the disk cannot be read; replace it".to_owned())),
            }
            Ok(true)
        }

        fn reset(&mut self, _: SequenceNumbers) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[test]
    fn a_damaged_store_is_gap_filled_and_raises_one_alarm() {
        let config = SessionConfig::new(Role::Acceptor, BeginString::Fix44, "US", "THEM");
        let (mut resend, mut outgoing) = (Resend::new(&config), Outgoing::new(&config, 5));
        let (mut out, mut alarms) = (Vec::new(), Vec::new());
        let mut events = |event: SessionEvent<'_>| {
            if let SessionEvent::Alarm(text) = event {
                alarms.push(text.to_owned());
            }
            AppAnswer::Taken
        };
        let mut io = SessionIo { out: &mut out, store: &mut DamagedStore, events: &mut events };
        resend.request(1, 4);
        resend.write(&DataTags::standard(), &mut outgoing, 0, &mut io);
        let text = String::from_utf8(out).unwrap().replace('\x01', "|");
        assert!(text.contains("|35=4|34=1|43=Y|") && text.contains("|36=5|123=Y|"), "{text}");
        assert_eq!(text.matches("|35=").count(), 1);
        assert_eq!(alarms.len(), 1, "{alarms:?}");
    }
}

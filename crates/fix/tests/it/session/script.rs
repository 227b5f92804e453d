//! Scripts: a session and a peer that is written line by line.
//!
//! ```text
//!   connect            a connection begins
//!   lost               the connection ends
//!   < 35=0|34=2        the peer sends a message: 49, 56 and 52 are added, `52=-121` is 121 s ago
//!   raw 35=0|          the peer sends these bytes
//!   send D 1           the application sends a message with ClOrdID (11) 1
//!   logout bye         the application logs out
//!   restart            an operator restarts the numbers
//!   wait 6             6 s pass
//!   poll               the session is polled without any time passing
//!   > 35=0|34=2        the session has sent this message, without its CompIDs and times
//!   ! logged out       the application has got this event
//!   = 5 7              the session expects number 5, and sends 7 next
//! ```
//!
//! Messages and events behind a line are all that the line caused, in their order.

use tickpath_fix::{BeginString, Role, SessionConfig, TimePrecision, values::write_utc_timestamp};

use super::end::{BEGIN_NS, End, SECOND_NS, config, frame, shown};

/// Time that passes at once.
const STEP_NS: u64 = SECOND_NS / 10;

/// Plays a script with an acceptor of FIX 4.4.
#[track_caller]
pub fn play_acceptor(script: &str) {
    play(config(Role::Acceptor, BeginString::Fix44), script);
}

/// Plays a script with an initiator of FIX 4.4.
#[track_caller]
pub fn play_initiator(script: &str) {
    play(config(Role::Initiator, BeginString::Fix44), script);
}

/// Plays a script with a session of these settings.
#[track_caller]
pub fn play(config: SessionConfig, script: &str) {
    let begin_string = config.begin_string;
    play_with(End::new(config), begin_string, script);
}

/// Plays a script with this session.
#[track_caller]
pub fn play_with(end: End, begin_string: BeginString, script: &str) {
    let mut player = Player { end, begin_string, now_ns: BEGIN_NS, last: String::new(), found: Found::default() };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        player.take(line);
    }
    player.check_nothing_left();
}

struct Player {
    end: End,
    begin_string: BeginString,
    now_ns: u64,
    /// The last line that let something happen.
    last: String,
    found: Found,
}

/// Messages and events that no line has named yet, in reverse order.
#[derive(Debug, Default)]
struct Found {
    messages: Vec<String>,
    events: Vec<String>,
}

impl Player {
    #[track_caller]
    fn take(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            ">" => {
                let found = self.found.messages.pop().map(|message| message.trim_end_matches('|').to_owned());
                assert_eq!(found.as_deref(), Some(rest), "sent after '{}'", self.last);
            }
            "!" => assert_eq!(self.found.events.pop().as_deref(), Some(rest), "event after '{}'", self.last),
            "=" => {
                let numbers = self.end.session.numbers();
                assert_eq!(format!("{} {}", numbers.next_in, numbers.next_out), rest, "after '{}'", self.last);
            }
            _ => {
                self.check_nothing_left();
                self.last = line.to_owned();
                self.act(word, rest);
                self.found.messages.extend(shown(&std::mem::take(&mut self.end.out)).into_iter().rev());
                self.found.events.extend(std::mem::take(&mut self.end.events).into_iter().rev());
            }
        }
    }

    #[track_caller]
    fn check_nothing_left(&self) {
        let Found { messages, events } = &self.found;
        assert!(messages.is_empty() && events.is_empty(), "after '{}' there are also {:?}", self.last, self.found);
    }

    #[track_caller]
    fn act(&mut self, word: &str, rest: &str) {
        let now_ns = self.now_ns;
        match word {
            "connect" => self.end.connect(now_ns),
            "lost" => self.end.disconnect(now_ns),
            "<" => {
                let bytes = self.message(rest);
                self.end.receive(&bytes, now_ns);
            }
            "raw" => self.end.receive(rest.replace('|', "\x01").as_bytes(), now_ns),
            "send" => {
                let (msg_type, id) = rest.split_once(' ').expect("a type and an id");
                self.end.send(msg_type, id, now_ns).expect("the session is logged on");
            }
            "logout" => self.end.call(|session, io| session.logout(rest, now_ns, io)),
            "restart" => self.end.call(|session, io| session.restart_numbers(now_ns, io)),
            "poll" => self.end.poll(now_ns),
            "wait" => {
                let steps = rest.parse::<u64>().expect("a number of seconds") * SECOND_NS / STEP_NS;
                for _ in 0..steps {
                    self.now_ns += STEP_NS;
                    self.end.poll(self.now_ns);
                }
            }
            _ => panic!("'{word}' is no word of a script"),
        }
    }

    /// Completes a message of the peer: its type, number, CompIDs and time come first. An empty CompID is left out.
    fn message(&self, fields: &str) -> Vec<u8> {
        let fields: Vec<(&str, &str)> = fields.split('|').filter_map(|field| field.split_once('=')).collect();
        let value = |tag: &str| fields.iter().find(|(known, _)| *known == tag).map(|(_, value)| (*value).to_owned());
        let id = |tag: &str, own: &str| Some(value(tag).unwrap_or_else(|| own.to_owned())).filter(|id| !id.is_empty());
        let time = self.time(&value("52").unwrap_or_default());
        let header = [
            ("35", value("35")),
            ("34", value("34")),
            ("49", id("49", "THEM")),
            ("56", id("56", "US")),
            ("52", Some(time)),
        ];
        let mut body = String::new();
        for (tag, value) in header {
            if let Some(value) = value {
                body += &format!("{tag}={value}|");
            }
        }
        for (tag, value) in &fields {
            match *tag {
                "8" | "34" | "35" | "49" | "52" | "56" => {}
                "122" => body += &format!("122={}|", self.time(value)),
                _ => body += &format!("{tag}={value}|"),
            }
        }
        frame(&value("8").unwrap_or_else(|| self.begin_string.text().to_owned()), &body)
    }

    /// Returns a time: of now, or so many seconds before or after it.
    fn time(&self, value: &str) -> String {
        let offset: i64 = if value.is_empty() { 0 } else { value.parse().expect("seconds with a sign") };
        let now_ns = self.now_ns.saturating_add_signed(offset * SECOND_NS as i64);
        let mut text = Vec::new();
        write_utc_timestamp(&mut text, now_ns, TimePrecision::Millis);
        String::from_utf8(text).expect("a time is text")
    }
}

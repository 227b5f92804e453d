//! Stages of one message's time: the stamps of both sides as stages that add up.
//!
//! ```text
//!   called ─ client ─ [connect: lookup, tcp, handshake] ─ encode ─ send ─┐ publisher
//!                                        server, kernel_and_wake_up ─────┤ wire
//!            handed ─ hand_over ─ parse ─ [event_loop] ─ [spin_turn] ────┘ subscriber
//! ```
//! A stage is the mean over the middle half of the messages: medians of stages do not add up to the median of the
//! whole, these nearly do. A stage between two stamps is measured. Between the send and the read there are no stamps:
//! the server stage is the mean that the server reports, kernel and wake-up are the time of bare sockets for the same
//! message. Such a stage is bounded, and reported with its bounds. Nothing is cut to fit: a sum above the whole is
//! reported as it is.

use super::records::{MessageStamps, ProcessDescription, ReceiveStamps};
use tickpath_lab_result::{Stage, StageKind, median};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StageDefinition {
    /// Name in the result file.
    pub name: &'static str,
    /// Label for readers.
    pub label: &'static str,
    pub group: StageGroup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StageGroup {
    /// Once per process, before the publish call.
    Before,
    /// Connection setup.
    Connect,
    /// The interpreter and the client library.
    Python,
    /// Any other stage.
    Other,
}

/// Every stage, in the order of the message's path.
pub(super) const STAGES: [StageDefinition; 38] = {
    use StageGroup::{Before, Connect, Other, Python};
    [
        define("interpreter_start", "the interpreter starts", Before),
        define("import_redis", "import redis", Before),
        define("script_until_call", "the script, until the call", Before),
        define("generator_late", "the generator is late", Other),
        define("connect_bus", "connect, and open the topic", Connect),
        define("connect_lookup", "connect: resolve the server's name", Connect),
        define("connect_tcp", "connect: open the socket", Connect),
        define("connect_round_trips", "connect: round trips of the handshake", Connect),
        define("connect_client", "connect: redis-py's part of that", Connect),
        define("waiting_for_a_cpu", "the publisher waits for a processor", Other),
        define("client", "redis-py around the command", Python),
        define("encode", "encode the command", Python),
        define("library", "the library, until it encodes", Python),
        define("load_markets", "the library loads the markets", Other),
        define("rate_limit", "the library's rate limiter waits", Other),
        define("log_on", "log on, or check the logon", Other),
        define("sign", "sign and encode the request", Python),
        define("http_client", "HTTP client or frame, until the write", Python),
        define("connect_exchange", "connect: TCP and TLS", Connect),
        define("send", "write to the socket", Other),
        define("answer", "the exchange, until its answer is read", Other),
        define("server", "the command, the mean the server reports", Other),
        define("kernel_and_wake_up", "kernel, and waking server and reader", Other),
        define("network", "the network, to the server and back", Other),
        define("cache_line", "a cache line to the other core", Other),
        define("server_and_clients", "the server, and both clients", Other),
        define("log_and_wake_up", "the log, and waking the reader", Other),
        define("spin_turn", "half a turn of the reader's spin", Python),
        define("sleep_turn", "half a turn of the reader's sleep", Other),
        define("decrypt", "decrypt", Python),
        define("decode", "decode the frame, or HTTP", Python),
        define("event_loop", "the event loop comes to the reader", Python),
        define("parse", "parse the reply", Python),
        define("parse_json", "parse the JSON", Python),
        define("unify", "the library's own form of it", Python),
        define("hand_over", "hand over to the script", Python),
        define("reply", "until the reply is there", Other),
        define("unexplained", "unexplained", Other),
    ]
};

const fn define(name: &'static str, label: &'static str, group: StageGroup) -> StageDefinition {
    StageDefinition { name, label, group }
}

pub(super) fn stage_definition(name: &str) -> Option<StageDefinition> {
    STAGES.into_iter().find(|part| part.name == name)
}

/// Known facts about the path between the two processes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PathFacts {
    /// Mean server time of one PUBLISH, or one push, as reported by the server over all its clients.
    pub server_ns: Option<f64>,
    /// Time of the same message over bare sockets: from the return of the write to the return of the read.
    pub wire_ns: Option<f64>,
    /// Time of a command and its reply over bare sockets.
    pub round_trip_ns: Option<f64>,
    /// Polling of the subscriber; none if it blocks.
    pub polls: Option<PollTiming>,
}

/// Timing of a subscriber that polls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PollTiming {
    /// Time from one poll to the next.
    pub turn_ns: f64,
    /// Part of a turn between an empty answer and the next poll.
    pub pause_ns: f64,
}

/// Stages of a message, and their relation to the whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Breakdown {
    pub stages: Vec<Stage>,
    /// Median time from the call until the script has the message.
    pub whole_ns: f64,
    /// Sum of the measured and bounded stages in percent of the whole, not capped.
    pub sum_percent: f64,
}

/// Returns the stages of messages that arrived; none without messages.
pub(super) fn breakdown(journeys: &[MessageStamps], between: &PathFacts) -> Option<Breakdown> {
    let spans: Vec<MessageSpans> = journeys.iter().map(MessageSpans::of).collect();
    let (middle, whole_ns) = MessageSpans::midmean(&spans)?;
    let mut list = StageList::default();
    list.connect(&middle, between);
    list.publisher(&middle);
    list.wire(&middle, between);
    list.measured("event_loop", middle.event_loop);
    list.measured("parse", middle.parse);
    list.measured("hand_over", middle.hand_over);
    Some(list.into_breakdown(whole_ns))
}

/// Returns the stages of publish calls up to their reply, for messages that no observed process received.
pub(super) fn breakdown_of_calls(journeys: &[MessageStamps], between: &PathFacts) -> Option<Breakdown> {
    let spans: Vec<MessageSpans> = journeys.iter().map(MessageSpans::of_call).collect();
    let (middle, whole_ns) = MessageSpans::midmean(&spans)?;
    let mut list = StageList::default();
    list.connect(&middle, between);
    list.publisher(&middle);
    list.measured("reply", middle.wire);
    Some(list.into_breakdown(whole_ns))
}

/// Returns the median stages of processes before their first call, whose time is given with each.
pub(super) fn before(firsts: &[(&ProcessDescription, u64)]) -> Vec<Stage> {
    let median_of = |of: fn(&ProcessDescription, u64) -> Option<u64>| {
        let found = firsts.iter().filter_map(|&(process, called)| of(process, called));
        median(found.map(|ns| ns as f64).collect())
    };
    let found = [
        ("interpreter_start", median_of(|process, _| elapsed(process.spawned, process.started))),
        ("import_redis", median_of(|process, _| elapsed(process.import_began, process.import_ended))),
        ("script_until_call", median_of(|process, called| elapsed(process.import_ended, called))),
    ];
    found.into_iter().filter_map(|(name, ns)| Some(measured(name, ns?))).collect()
}

impl PollTiming {
    /// Returns the median poll timing over a subscriber's messages; none if it blocks.
    pub fn of(received: &[ReceiveStamps]) -> Option<Self> {
        let asked = || received.windows(2).filter(|pair| pair[1].empty > 0);
        let turns = asked().map(|pair| span(pair[0].handed, pair[1].read) / pair[1].empty as f64);
        let pauses = asked().map(|pair| pair[1].pause as f64 / pair[1].empty as f64);
        Some(Self { turn_ns: median(turns.collect())?, pause_ns: median(pauses.collect())? })
    }

    /// Returns whether the subscriber sleeps for longer than it polls.
    pub fn is_pausing(&self) -> bool {
        2.0 * self.pause_ns > self.turn_ns
    }
}

/// One message's time, in pieces that add up to it; nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct MessageSpans {
    whole: f64,
    lookup: SharedSpan,
    tcp: SharedSpan,
    handshake: f64,
    /// Number of commands of the handshake.
    commands: f64,
    delayed: f64,
    client: f64,
    encode: f64,
    send: f64,
    wire: f64,
    event_loop: f64,
    parse: f64,
    hand_over: f64,
}

/// A piece that was stamped together with another one; nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct SharedSpan {
    ns: f64,
    min: f64,
    max: f64,
}

impl MessageSpans {
    fn of(journey: &MessageStamps) -> Self {
        let MessageStamps { sent, received } = journey;
        // On another processor the reader may have the message before the write has returned.
        let left = sent.sent.min(received.read).max(sent.send);
        let turn = received.resumed.max(received.read);
        Self {
            whole: span(sent.called, received.handed),
            send: span(sent.send, left),
            wire: span(left, received.read),
            event_loop: span(received.read, turn),
            parse: span(turn, received.parsed),
            hand_over: span(received.parsed, received.handed),
            ..Self::of_publisher(journey)
        }
    }

    fn of_call(journey: &MessageStamps) -> Self {
        let sent = &journey.sent;
        Self {
            whole: span(sent.called, sent.returned),
            send: span(sent.send, sent.sent),
            wire: span(sent.sent, sent.returned),
            ..Self::of_publisher(journey)
        }
    }

    /// Returns the pieces up to the write; the wait for a processor is subtracted from the piece that it was in.
    fn of_publisher(journey: &MessageStamps) -> Self {
        let sent = &journey.sent;
        let is_made = sent.connected > 0;
        let of_connect = |from: u64, to: u64| if is_made { span(from, to) } else { 0.0 };
        let (opening, handshake) = (of_connect(sent.connect, sent.tcp), of_connect(sent.tcp, sent.connected));
        let client = span(sent.called, sent.encode) - opening - handshake;
        let take = |from: f64, delay: u64| (delay as f64).min(from.max(0.0));
        let delays =
            [take(opening, sent.delayed_tcp), take(handshake, sent.delayed_handshake), take(client, sent.delayed_else)];
        // The kernel does not report whether the wait was before or after the name was resolved: each gets its share.
        let running = if opening > 0.0 { (opening - delays[0]) / opening } else { 0.0 };
        let lookup = (sent.lookup as f64).min(opening);
        let share =
            |ns: f64| SharedSpan { ns: ns * running, min: (ns - delays[0]).max(0.0), max: ns.min(opening - delays[0]) };
        Self {
            lookup: share(lookup),
            tcp: share(opening - lookup),
            handshake: handshake - delays[1],
            commands: sent.commands as f64,
            delayed: delays.iter().sum(),
            client: client - delays[2],
            encode: span(sent.encode, sent.send),
            ..Self::default()
        }
    }

    /// Returns the mean of the middle half, and the median of the whole.
    fn midmean(all: &[Self]) -> Option<(Self, f64)> {
        let mut sorted = all.to_vec();
        sorted.sort_by(|a, b| a.whole.total_cmp(&b.whole));
        let aside = sorted.len() / 4;
        let middle = &sorted[aside..sorted.len() - aside];
        let whole_ns = median(sorted.iter().map(|spans| spans.whole).collect())?;
        let mean = |of: fn(&Self) -> f64| middle.iter().map(of).sum::<f64>() / middle.len().max(1) as f64;
        let share = |of: fn(&Self) -> SharedSpan| {
            let mean = |part: fn(&SharedSpan) -> f64| {
                middle.iter().map(|spans| part(&of(spans))).sum::<f64>() / middle.len().max(1) as f64
            };
            SharedSpan { ns: mean(|s| s.ns), min: mean(|s| s.min), max: mean(|s| s.max) }
        };
        let spans = Self {
            whole: mean(|s| s.whole),
            lookup: share(|s| s.lookup),
            tcp: share(|s| s.tcp),
            handshake: mean(|s| s.handshake),
            commands: mean(|s| s.commands),
            delayed: mean(|s| s.delayed),
            client: mean(|s| s.client),
            encode: mean(|s| s.encode),
            send: mean(|s| s.send),
            wire: mean(|s| s.wire),
            event_loop: mean(|s| s.event_loop),
            parse: mean(|s| s.parse),
            hand_over: mean(|s| s.hand_over),
        };
        Some((spans, whole_ns))
    }
}

#[derive(Default)]
struct StageList(Vec<Stage>);

impl StageList {
    /// Adds a measured stage, unless its time is zero.
    fn measured(&mut self, name: &str, ns: f64) {
        if ns > 0.0 {
            self.0.push(measured(name, ns));
        }
    }

    fn bounded(&mut self, name: &str, ns: f64, low: f64, high: f64) {
        if ns > 0.0 {
            self.0.push(bounded(name, ns, low, high));
        }
    }

    /// Adds a piece stamped together with the wait for a processor; without such a wait it counts as measured.
    fn share(&mut self, name: &str, share: SharedSpan) {
        match share.max - share.min > 0.0 {
            true => self.bounded(name, share.ns, share.min, share.max),
            false => self.measured(name, share.ns),
        }
    }

    /// Adds the connection's stages. The handshake is stamped as a whole: its round trips take at least the time of as
    /// many over bare sockets, and redis-py takes at most the rest.
    fn connect(&mut self, spans: &MessageSpans, between: &PathFacts) {
        self.share("connect_lookup", spans.lookup);
        self.share("connect_tcp", spans.tcp);
        let trips = between.round_trip_ns.map_or(0.0, |ns| ns * spans.commands);
        if trips > 0.0 {
            let rest = spans.handshake - trips;
            self.bounded("connect_round_trips", trips, trips, spans.handshake);
            self.bounded("connect_client", rest, 0.0, rest);
        } else {
            self.measured("connect_client", spans.handshake);
        }
    }

    fn publisher(&mut self, spans: &MessageSpans) {
        self.measured("waiting_for_a_cpu", spans.delayed);
        self.measured("client", spans.client);
        self.measured("encode", spans.encode);
        self.measured("send", spans.send);
    }

    /// Adds the stages between the write and the read, as far as they are known.
    fn wire(&mut self, spans: &MessageSpans, between: &PathFacts) {
        let server = between.server_ns.unwrap_or(0.0);
        self.bounded("server", server, 0.0, spans.wire);
        let kernel = between.wire_ns.map_or(0.0, |ns| ns - server);
        self.bounded("kernel_and_wake_up", kernel, kernel, spans.wire - server);
        if let Some(polls) = between.polls {
            // A message arrives on average in the middle of a turn.
            let name = if polls.is_pausing() { "sleep_turn" } else { "spin_turn" };
            self.bounded(name, polls.turn_ns / 2.0, 0.0, polls.turn_ns);
        }
    }

    /// Adds the unexplained remainder, and computes the sum in percent of the whole.
    fn into_breakdown(mut self, whole_ns: f64) -> Breakdown {
        let known: f64 = self.0.iter().filter_map(|stage| stage.p50_ns).sum();
        self.0.extend(unexplained("unexplained", whole_ns - known));
        let sum_percent = if whole_ns > 0.0 { 100.0 * known / whole_ns } else { 0.0 };
        Breakdown { stages: self.0, whole_ns, sum_percent }
    }
}

/// Creates a stage between two stamps.
pub(super) fn measured(name: &str, ns: f64) -> Stage {
    stage(name, ns, StageKind::Measured)
}

/// Creates a stage without stamps of its own. A value measured elsewhere may exceed the time between the stamps; then
/// it is a bound.
pub(super) fn bounded(name: &str, ns: f64, low: f64, high: f64) -> Stage {
    let bounds = [low.min(high).min(ns).max(0.0), high.max(low).max(ns)];
    Stage { bounds_ns: Some(bounds.map(f64::round)), ..stage(name, ns, StageKind::Bounded) }
}

/// Creates the stage of an unexplained remainder; none if nothing remains.
pub(super) fn unexplained(name: &str, ns: f64) -> Option<Stage> {
    (ns > 0.0).then(|| stage(name, ns, StageKind::Unexplained))
}

fn stage(name: &str, ns: f64, kind: StageKind) -> Stage {
    let label = stage_definition(name).map(|part| part.label.to_owned());
    Stage { name: name.to_owned(), label, p50_ns: Some(ns.round()), bounds_ns: None, kind }
}

/// Returns the time from one stamp to a later one; none if a stamp is missing.
fn elapsed(from: u64, to: u64) -> Option<u64> {
    if from > 0 { to.checked_sub(from) } else { None }
}

/// Returns the time from one stamp to a later one; zero if it is not later.
fn span(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64
}

#[cfg(test)]
mod tests {
    use super::super::records::SendStamps;
    use super::*;

    const SPINS: PollTiming = PollTiming { turn_ns: 4_000.0, pause_ns: 300.0 };

    /// Returns a message of 100 µs over an open connection.
    fn warm() -> MessageStamps {
        let sent = SendStamps {
            called: 0,
            encode: 20_000,
            send: 25_000,
            sent: 45_000,
            returned: 120_000,
            ..SendStamps::default()
        };
        let received = ReceiveStamps { read: 75_000, parsed: 95_000, handed: 100_000, ..ReceiveStamps::default() };
        MessageStamps { sent, received }
    }

    /// Returns the same message with a connection of 4 ms made inside the call.
    fn cold() -> MessageStamps {
        let MessageStamps { sent, received } = warm();
        let later = |ns: u64| ns + 4_000_000;
        let sent = SendStamps {
            connect: 10_000,
            tcp: 1_510_000,
            connected: 4_010_000,
            lookup: 1_000_000,
            commands: 4,
            encode: later(sent.encode),
            send: later(sent.send),
            sent: later(sent.sent),
            returned: later(sent.returned),
            delayed_handshake: 500_000,
            ..sent
        };
        let received = ReceiveStamps {
            read: later(received.read),
            parsed: later(received.parsed),
            handed: later(received.handed),
            ..received
        };
        MessageStamps { sent, received }
    }

    fn times(breakdown: &Breakdown) -> Vec<(&str, f64)> {
        breakdown.stages.iter().map(|stage| (stage.name.as_str(), stage.p50_ns.unwrap())).collect()
    }

    #[test]
    fn every_stage_is_listed_in_the_order_of_the_path() {
        let between = PathFacts {
            server_ns: Some(5_000.0),
            wire_ns: Some(20_000.0),
            round_trip_ns: Some(50_000.0),
            polls: Some(SPINS),
        };
        for journey in [warm(), cold()] {
            let found = breakdown(&[journey], &between).unwrap();
            let places: Vec<usize> = found
                .stages
                .iter()
                .map(|stage| STAGES.iter().position(|part| part.name == stage.name).expect("a listed stage"))
                .collect();
            assert!(places.is_sorted(), "{:?}", found.stages);
        }
    }

    #[test]
    fn stages_and_the_remainder_cover_the_whole() {
        let bounds = [None, Some(1_000.0), Some(25_000.0), Some(1e9)];
        for journey in [warm(), cold()] {
            for server_ns in bounds {
                for wire_ns in bounds {
                    for polls in [None, Some(SPINS)] {
                        let between = PathFacts { server_ns, wire_ns, round_trip_ns: wire_ns, polls };
                        let found = breakdown(&[journey; 5], &between).unwrap();
                        let sum: f64 = times(&found).iter().map(|(_, ns)| ns).sum();
                        let known = found.stages.iter().filter(|stage| stage.kind != StageKind::Unexplained);
                        let known: f64 = known.filter_map(|stage| stage.p50_ns).sum();
                        assert!(sum >= found.whole_ns - 1.0, "{between:?}: {sum} of {}", found.whole_ns);
                        assert!((found.sum_percent - 100.0 * known / found.whole_ns).abs() < 0.1, "{between:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn stages_without_stamps_are_bounded_and_the_sum_is_uncut() {
        // There are 30 µs between the write and the read, and bare sockets needed 41 elsewhere.
        let between = PathFacts { server_ns: Some(5_000.0), wire_ns: Some(41_000.0), ..PathFacts::default() };
        let found = breakdown(&[warm(); 5], &between).unwrap();
        assert_eq!(found.sum_percent, 111.0);
        let bounds: Vec<_> = found.stages.iter().filter_map(|s| Some((s.name.as_str(), s.bounds_ns?))).collect();
        assert_eq!(bounds, [("server", [0.0, 30_000.0]), ("kernel_and_wake_up", [25_000.0, 36_000.0])]);
        for stage in &found.stages {
            assert_eq!(stage.kind == StageKind::Bounded, stage.bounds_ns.is_some(), "{stage:?}");
        }
    }

    #[test]
    fn shares_of_a_common_stamp_are_bounded() {
        let mut waited = cold();
        waited.sent.delayed_tcp = 300_000;
        let of = |journey: MessageStamps, name: &str| {
            let found = breakdown(&[journey; 5], &PathFacts::default()).unwrap();
            found.stages.into_iter().find(|stage| stage.name == name).unwrap()
        };
        // The name took 1 ms of 1.5 ms; a wait for a processor of 0.3 ms may have been in either part.
        let lookup = of(waited, "connect_lookup");
        assert_eq!((lookup.kind, lookup.p50_ns), (StageKind::Bounded, Some(800_000.0)));
        assert_eq!(lookup.bounds_ns, Some([700_000.0, 1_000_000.0]));
        assert_eq!(of(waited, "connect_tcp").bounds_ns, Some([200_000.0, 500_000.0]));
        assert_eq!(of(cold(), "connect_lookup").kind, StageKind::Measured);
    }

    #[test]
    fn a_polling_subscriber_is_recognised_by_its_pauses() {
        let received = |n: u64, empty: u64, pause: u64| {
            let read = n * 100_000_000;
            ReceiveStamps { read, handed: read + 50_000, empty, pause, ..ReceiveStamps::default() }
        };
        let asks = |empty: u64, pause: u64| PollTiming::of(&[received(1, empty, pause), received(2, empty, pause)]);
        assert_eq!(asks(0, 0), None);
        assert!(!asks(5_000, 3_000_000).unwrap().is_pausing(), "it spins");
        let sleeps = asks(90, 90 * 1_060_000).unwrap();
        assert!(sleeps.is_pausing() && sleeps.pause_ns == 1_060_000.0, "{sleeps:?}");
        let between = PathFacts { polls: Some(sleeps), ..PathFacts::default() };
        let found = breakdown(&[warm()], &between).unwrap();
        assert!(found.stages.iter().any(|stage| stage.name == "sleep_turn"), "{:?}", found.stages);
    }

    #[test]
    fn a_cold_message_is_split_into_its_connection_and_the_rest() {
        let between = PathFacts { round_trip_ns: Some(100_000.0), ..PathFacts::default() };
        let found = breakdown(&[cold()], &between).unwrap();
        assert_eq!(
            times(&found),
            [
                ("connect_lookup", 1_000_000.0),
                ("connect_tcp", 500_000.0),
                ("connect_round_trips", 400_000.0),
                ("connect_client", 1_600_000.0),
                ("waiting_for_a_cpu", 500_000.0),
                ("client", 20_000.0),
                ("encode", 5_000.0),
                ("send", 20_000.0),
                ("parse", 20_000.0),
                ("hand_over", 5_000.0),
                ("unexplained", 30_000.0),
            ]
        );
    }

    #[test]
    fn a_reader_that_is_faster_than_the_write_leaves_no_wire() {
        let mut journey = warm();
        journey.received.read = 30_000;
        let found = breakdown(&[journey], &PathFacts::default()).unwrap();
        assert!(found.stages.iter().all(|stage| stage.name != "unexplained"), "{:?}", found.stages);
        assert_eq!(found.sum_percent, 100.0);
    }

    #[test]
    fn a_call_without_a_watched_subscriber_ends_with_its_reply() {
        let found = breakdown_of_calls(&[warm()], &PathFacts::default()).unwrap();
        assert_eq!(found.whole_ns, 120_000.0);
        assert_eq!(times(&found).last(), Some(&("reply", 75_000.0)));
        assert_eq!(breakdown(&[], &PathFacts::default()), None);
    }
}

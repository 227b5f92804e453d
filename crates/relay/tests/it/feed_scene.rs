//! A carrier in a thread, its scripted connections, and a subscriber of its topic.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tempfile::TempDir;
use tickpath_bus::{Gap, Policy, StartPosition, Subscriber, SubscriptionEvent, connect};
use tickpath_clock::{Clock, HostClock, Wait, sleep_ns};
use tickpath_feed::Feed;
use tickpath_market::replay::ReplaySpeed;
use tickpath_market::{BookLevel, FeedCondition, FeedStatus, Kind, TopOfBook, Trade};
use tickpath_relay::feed::{FeedMeter, FeedRelayConfig, FeedTotals, replay_frames, run};
use tickpath_relay::{RelayContext, RelayError, TargetConfig};
use zerocopy::FromBytes;

use crate::scripted_feed::{FeedScript, ScriptParser, ScriptedFeed};

const TOPIC: &str = "ticks";

/// Bound of each wait, in nanoseconds.
const LIMIT_NS: i64 = 60_000_000_000;

pub struct Scene {
    pub folder: TempDir,
    pub scripts: Vec<Arc<FeedScript>>,
    pub meter: Arc<FeedMeter>,
    pub reports: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    carrier: Option<JoinHandle<Result<(), RelayError>>>,
    subscriber: Option<Box<dyn Subscriber>>,
}

impl Scene {
    /// Starts a carrier with so many connections and a spare one, on a topic that keeps everything, and subscribes to
    /// the topic. The carrier begins with a gap of all instruments.
    pub fn new(connections: usize) -> Self {
        Self::with(connections, |config| config)
    }

    /// Starts a carrier with another configuration.
    pub fn with(connections: usize, change: impl FnOnce(FeedRelayConfig) -> FeedRelayConfig) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = change(relay_config(&folder, TOPIC));
        let is_kept = config.target.policy == Some(Policy::Keep);
        let scripts: Vec<Arc<FeedScript>> = (0..=connections).map(|_| Arc::default()).collect();
        let boxed = |script: &Arc<FeedScript>| Box::new(ScriptedFeed::new(script.clone())) as Box<dyn Feed>;
        let feeds: Vec<Box<dyn Feed>> = scripts.iter().map(boxed).collect();
        let (meter, reports): (Arc<FeedMeter>, Arc<Mutex<Vec<String>>>) = (Arc::default(), Arc::default());
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, measured, reported) = (stop.clone(), meter.clone(), reports.clone());
        let carrier = std::thread::spawn(move || {
            with_context(&stopped, &reported, |context| run(&config, feeds, &measured, context))
        });
        let mut scene = Self { folder, scripts, meter, reports, stop, carrier: Some(carrier), subscriber: None };
        if is_kept {
            scene.subscribe(StartPosition::Oldest);
            scene.expect(&["gap all 0 0"]);
        }
        scene
    }

    pub fn subscribe(&mut self, start: StartPosition) {
        self.subscriber = Some(subscriber(&self.folder, TOPIC, start));
    }

    pub fn unsubscribe(&mut self) {
        self.subscriber = None;
    }

    /// Waits for these events on the topic, and for no others before the last of them.
    pub fn expect(&mut self, expected: &[&str]) {
        let subscriber = self.subscriber.as_deref_mut().expect("it has subscribed");
        assert_eq!(take(subscriber, expected.len()), expected);
    }

    /// Takes events until the condition holds for all that were taken.
    pub fn take_until(&mut self, is_enough: impl Fn(&[String]) -> bool) -> Vec<String> {
        let subscriber = self.subscriber.as_deref_mut().expect("it has subscribed");
        let mut taken = Vec::new();
        until("the events", || {
            poll(subscriber, 64, &mut taken);
            is_enough(&taken)
        });
        taken
    }

    pub fn totals(&self) -> FeedTotals {
        self.meter.totals()
    }

    /// Waits until the totals, which are copied from time to time, fulfil a condition.
    pub fn await_totals(&self, condition: impl Fn(&FeedTotals) -> bool) {
        until("the totals", || condition(&self.totals()));
    }

    /// Stops the carrier and returns its last totals.
    pub fn stop(&mut self) -> FeedTotals {
        self.stop.store(true, Ordering::Relaxed);
        self.await_end()
    }

    /// Waits for the end of the carrier and returns its last totals.
    pub fn await_end(&mut self) -> FeedTotals {
        let carrier = self.carrier.take().expect("it has not ended");
        until("the end of the carrier", || carrier.is_finished());
        carrier.join().expect("a carrier does not panic").expect("nothing has failed");
        self.totals()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(carrier) = self.carrier.take() {
            let _ = carrier.join();
        }
    }
}

/// Replays a file of frames as fast as possible, and returns the events on its topic.
pub fn replay(folder: &TempDir, file: &str, events: usize) -> Result<(Vec<String>, FeedTotals), RelayError> {
    let (stop, reports, meter) = (AtomicBool::new(false), Mutex::default(), FeedMeter::default());
    let config = relay_config(folder, "replayed");
    let (file, pace) = (folder.path().join(file), None::<ReplaySpeed>);
    with_context(&stop, &reports, |context| replay_frames(&config, &file, pace, &mut ScriptParser, &meter, context))?;
    let mut subscriber = subscriber(folder, "replayed", StartPosition::Oldest);
    Ok((take(&mut *subscriber, events), meter.totals()))
}

/// Waits until a condition holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let clock = HostClock::get().expect("the host has a clock");
    let begin = clock.ticks();
    while !condition() {
        assert!(clock.ns_between(begin, clock.ticks()) < LIMIT_NS, "{what} never came");
        sleep_ns(100_000);
    }
}

fn relay_config(folder: &TempDir, topic: &str) -> FeedRelayConfig {
    FeedRelayConfig {
        url: format!("file://{}", folder.path().display()),
        topic: topic.to_owned(),
        target: TargetConfig { policy: Some(Policy::Keep), capacity_bytes: 1 << 20, max_age_ns: None },
        wait: Wait::Block,
        silence_ns: 3_600_000_000_000,
        raw: None::<PathBuf>,
        count: None,
        duration_ns: None,
    }
}

fn with_context<T>(stop: &AtomicBool, reports: &Mutex<Vec<String>>, carry: impl FnOnce(&RelayContext<'_>) -> T) -> T {
    let report = |text: &str| reports.lock().expect("no thread panics with it").push(text.to_owned());
    let clock = HostClock::get().expect("the host has a clock");
    carry(&RelayContext { clock, stop, report: &report })
}

fn subscriber(folder: &TempDir, topic: &str, start: StartPosition) -> Box<dyn Subscriber> {
    let bus = connect(&format!("file://{}", folder.path().display())).expect("the folder is a bus");
    bus.subscriber(topic, start, Wait::Yield).expect("the topic can be subscribed")
}

fn take(subscriber: &mut dyn Subscriber, count: usize) -> Vec<String> {
    let mut taken = Vec::new();
    until("an event on the topic", || {
        poll(subscriber, count - taken.len(), &mut taken);
        taken.len() == count
    });
    taken
}

fn poll(subscriber: &mut dyn Subscriber, limit: usize, taken: &mut Vec<String>) {
    let polled = subscriber.poll(limit, &mut |event| {
        taken.push(match event {
            SubscriptionEvent::Message(message) => message_text(message.kind, message.payload),
            SubscriptionEvent::Gap(Gap::Missed(missed)) => format!("missed {missed}"),
            other => format!("{other:?}"),
        });
    });
    polled.expect("the topic is sound");
}

/// Returns a message as text: its name, and the fields that a script gives.
fn message_text(kind: u8, payload: &[u8]) -> String {
    match Kind::from_code(kind).expect("a kind of ours") {
        Kind::TopOfBook => {
            let quote = TopOfBook::read_from_bytes(payload).expect("a whole message");
            format!("quote {} {}", quote.symbol, quote.bid.0)
        }
        Kind::Trade => {
            let trade = Trade::read_from_bytes(payload).expect("a whole message");
            format!("trade {} {}", trade.symbol, trade.trade_id)
        }
        Kind::BookLevel => {
            let BookLevel { symbol, sequence, side, price, quantity, flags, .. } =
                BookLevel::read_from_bytes(payload).expect("a whole message");
            let side = ["", "b", "a"][usize::from(side)];
            format!("level {symbol} {sequence} {side}{}:{} {flags}", price.0, quantity.0)
        }
        Kind::FeedStatus => {
            let status = FeedStatus::read_from_bytes(payload).expect("a whole message");
            status_text(&status)
        }
        other => format!("{other:?}"),
    }
}

fn status_text(status: &FeedStatus) -> String {
    let FeedStatus { connection, symbol, expected, found, value, .. } = status;
    match FeedCondition::from_code(status.condition).expect("a condition") {
        FeedCondition::Connected => format!("connected {connection}"),
        FeedCondition::Disconnected => format!("disconnected {connection}"),
        FeedCondition::Gap if *symbol == FeedStatus::ALL_SYMBOLS => format!("gap all {expected} {found}"),
        FeedCondition::Gap => format!("gap {symbol} {expected} {found}"),
        FeedCondition::BookValid => format!("valid {symbol}"),
        FeedCondition::Silence => "silence".to_owned(),
        FeedCondition::Maintenance => format!("maintenance {connection}"),
        FeedCondition::ClockOffset => format!("offset {connection} {value}"),
    }
}

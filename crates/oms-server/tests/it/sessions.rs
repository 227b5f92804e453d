//! The OMS as a server: real sockets, real clients, and a venue, each on a thread of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use tickpath_clock::HostClock;
use tickpath_oms_client::{Client as Remote, ClientError, ClientEvent, Config as RemoteConfig, Since};
use tickpath_oms_protocol::{LogonRejectReason, Query, Secret, Status};
use tickpath_oms_server::settings::KEEP_DAYS;
use tickpath_oms_server::{ServerConfig, ServerEvent, ServerTlsFiles};

use super::*;

/// Max time to wait for a condition, in nanoseconds, before the test fails.
pub(crate) const PATIENCE_NS: u64 = 20 * SECOND;

/// An OMS with its venue, which can be stopped and restarted.
pub(crate) struct OmsFixture {
    name: String,
    pub(crate) folder: TempDir,
    pub(crate) config: Config,
    pub(crate) clock: HostClock,
    feed: Writer,
    /// TLS files for connections over TCP.
    pub(crate) tls: Option<ServerTlsFiles>,
    pub(crate) keep_days: u32,
    pub(crate) running: Option<FixtureRun>,
}

pub(crate) struct FixtureRun {
    stop: Arc<AtomicBool>,
    venue_stop: Arc<AtomicBool>,
    oms: JoinHandle<Result<(), String>>,
    /// None for a venue that is reached by a line.
    venue: Option<JoinHandle<()>>,
    pub(crate) events: Receiver<ServerEvent>,
}

impl OmsFixture {
    pub(crate) fn new(layout: Layout) -> Self {
        static HOUSES: AtomicU64 = AtomicU64::new(0);
        let name = format!("oms-house-{}-{}", std::process::id(), HOUSES.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let clock = HostClock::get().expect("this host has a clock");
        let place = LogPath::shared_memory(&format!("{name}.market")).expect("the name is good");
        let feed =
            Writer::open(&LogConfig::topic(place, OverflowPolicy::Overwrite), clock.calibration()).expect("it is new");
        let mut config = config(&name, folder.path());
        config.layout = layout;
        config.wait = if layout == Layout::Inline { Wait::Yield } else { Wait::Block };
        config.seed = None;
        let user = |name: &str, role: &str, sessions: &str| {
            let secret = Secret::from_password(&format!("{name}'s password"));
            format!(
                "[[user]]\nname = \"{name}\"\nrole = \"{role}\"\naccounts = [\"*\"]\nsessions = [{sessions}]\nsecret = \"{secret}\"\n"
            )
        };
        let users = [user("anna", "trade", "0, 1"), user("boss", "admin", "2"), user("eve", "read", "3")].concat();
        let file = folder.path().join("users.toml");
        fs::write(&file, users).expect("the folder is ours");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        for session in [2, 3] {
            let accounts = if session == 2 { vec![ALL_ACCOUNTS] } else { Vec::new() };
            config.trading.sessions.push(SessionConfig { session, accounts, ..config.trading.sessions[0].clone() });
        }
        let mut fixture = Self { name, folder, config, clock, feed, tls: None, keep_days: KEEP_DAYS, running: None };
        fixture.start();
        fixture
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("oms.sock")
    }

    pub(crate) fn start(&mut self) {
        let (events, hear) = sync_channel(4096);
        let (socket, users) = (self.socket(), self.folder.path().join("users.toml"));
        let tcp = Some("127.0.0.1:0".parse().expect("an address"));
        let (tls, sessions) = (self.tls.clone(), self.config.trading.sessions.clone());
        let server = ServerConfig {
            unix: Some(socket),
            tcp,
            tls,
            users,
            heartbeat_ms: 10_000,
            max_sessions: 16,
            keep_days: self.keep_days,
            settings: None,
            reload: Arc::default(),
            sessions,
            events,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (clock, config, stopped, ticks) = (self.clock, self.config.clone(), stop.clone(), self.ticks());
        let oms = std::thread::spawn(move || {
            let ended = tickpath_oms_server::run(clock, &config, &server, Some(ticks), &stopped, || {
                ready.send(()).expect("the test waits");
            });
            ended.map(drop).map_err(|e| e.to_string())
        });
        if is_ready.recv().is_err() {
            panic!("the OMS does not start: {:?}", oms.join());
        }
        let venue_stop = Arc::new(AtomicBool::new(false));
        let has_lanes = self.config.lanes.venues.contains(&VENUE);
        let venue = has_lanes.then(|| self.start_venue(venue_stop.clone()));
        self.running = Some(FixtureRun { stop, venue_stop, oms, venue, events: hear });
        self.tick(99, 101);
    }

    fn start_venue(&self, stop: Arc<AtomicBool>) -> JoinHandle<()> {
        let lanes = self.config.lanes.join_venue(VENUE, self.clock.calibration()).expect("the OMS has made them");
        let venue = SimVenue::new(VenueConfig { venue: VENUE, symbols: 2, expected_orders: 4_096 });
        let mut line = VenueEngine::new(self.clock, venue, lanes.requests, lanes.reports, Some(self.ticks()));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                if line.poll().expect("its lanes are sound") == 0 {
                    tickpath_clock::yield_now();
                }
            }
        })
    }

    pub(crate) fn stop(&mut self) {
        let running = self.running.take().expect("it runs");
        running.venue_stop.store(true, Ordering::Release);
        running.stop.store(true, Ordering::Release);
        if let Some(venue) = running.venue {
            venue.join().expect("the venue ends");
        }
        running.oms.join().expect("the OMS ends").expect("in good order");
    }

    pub(crate) fn ticks(&self) -> Reader {
        let place = LogPath::shared_memory(&format!("{}.market", self.name)).expect("the name is good");
        Reader::open(&place, ReaderStart::Oldest, Registration::Registered).expect("the topic is there")
    }

    pub(crate) fn tick(&mut self, bid: i64, ask: i64) {
        let (tick, now) = (top(bid, ask), self.clock.ticks());
        self.feed.publish(now, Kind::TopOfBook.code(), tick.as_bytes()).expect("an overwrite topic takes all");
    }

    /// Returns the TCP address of the OMS.
    pub(crate) fn tcp(&self) -> String {
        let running = self.running.as_ref().expect("it runs");
        let listening = running.events.iter().find_map(|event| match event {
            ServerEvent::Listening(place) => Some(place).filter(|place| place.starts_with("tcp")),
            _ => None,
        });
        listening.expect("it listens")
    }

    pub(crate) fn remote(&self, user: &str, since: Since) -> RecordingClient {
        self.remote_at(format!("unix://{}", self.socket().display()), user, since)
    }

    pub(crate) fn remote_at(&self, url: String, user: &str, since: Since) -> RecordingClient {
        let config = RemoteConfig { since, ..RemoteConfig::new(url, user, format!("{user}'s password")) };
        let client = Remote::connect(config).unwrap_or_else(|e| panic!("{user} does not get in: {e}"));
        RecordingClient { client, clock: self.clock, heard: Vec::new(), events: Vec::new() }
    }
}

impl Drop for OmsFixture {
    fn drop(&mut self) {
        if self.running.is_some() && !std::thread::panicking() {
            self.stop();
        }
        let _ = self.config.lanes.remove();
        let _ = self.feed.path().remove();
    }
}

/// A client with all messages that it received.
pub(crate) struct RecordingClient {
    pub(crate) client: Remote,
    clock: HostClock,
    /// Reports and denials with their numbers.
    pub(crate) heard: Vec<(u64, ReceivedMessage)>,
    pub(crate) events: Vec<ClientEvent>,
}

impl RecordingClient {
    pub(crate) fn send(&mut self, request: impl Into<ClientRequest>) {
        let ClientRequest(request) = request.into();
        self.client.send(&request).expect("it is connected");
    }

    /// Waits until the session was connected this many times.
    pub(crate) fn connects(&mut self, times: usize) {
        let is_connected = |event: &&ClientEvent| matches!(event, ClientEvent::Connected(_));
        self.until("it is there again", |client| client.events.iter().filter(is_connected).count() == times);
    }

    /// Polls until the condition holds.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let from = self.clock.ticks();
        while !holds(self) {
            self.poll();
            assert!(self.clock.ns_between(from, self.clock.ticks()) < PATIENCE_NS as i64, "never: {what}; {self:?}");
        }
    }

    pub(crate) fn poll(&mut self) {
        self.client.wait(1_000_000);
        let Self { client, heard, events, .. } = self;
        let polled = client.poll(|event| match event {
            ClientEvent::Report { number, report, .. } => heard.push((number, ReceivedMessage::Report(report))),
            ClientEvent::Denied { number, denial, .. } => heard.push((number, ReceivedMessage::Denied(denial))),
            other => events.push(other),
        });
        if let Err(e) = polled {
            panic!("the client is over: {e}");
        }
    }

    pub(crate) fn await_reports(&mut self, reports: usize) {
        self.until(&format!("{reports} reports"), |client| client.heard.len() >= reports);
        assert_eq!(self.heard.len(), reports, "{:?}", self.heard);
    }

    pub(crate) fn reported(&self) -> Vec<(u64, ExecType, OrdStatus)> {
        self.heard.iter().map(|(_, message)| message.summary()).collect()
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.heard.iter().map(|(number, _)| *number).collect()
    }

    pub(crate) fn status(&mut self) -> Status {
        self.client.query(Query { what: Query::STATUS, ..Query::default() }).expect("it is connected");
        let status = |event: &ClientEvent| match event {
            ClientEvent::Answered(status) => *status,
            _ => None,
        };
        self.until("an answer", |client| client.events.iter().any(|event| status(event).is_some()));
        let text = self.events.iter().find_map(status).expect("it was just there");
        self.events.retain(|event| status(event).is_none());
        text
    }
}

impl std::fmt::Debug for RecordingClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearing").field("heard", &self.heard).field("events", &self.events).finish()
    }
}

const FILLED: [(u64, ExecType, OrdStatus); 3] = [
    (1, ExecType::PendingNew, OrdStatus::PendingNew),
    (1, ExecType::New, OrdStatus::New),
    (1, ExecType::Trade, OrdStatus::Filled),
];

#[test]
fn an_order_is_sent_and_reported_over_unix_and_tcp() {
    for layout in [Layout::Inline, Layout::Split] {
        let fixture = OmsFixture::new(layout);
        for url in [format!("unix://{}", fixture.socket().display()), fixture.tcp()] {
            let mut client = fixture.remote_at(url, "anna", Since::Now);
            let id = 1 + u64::from(client.client.welcome().session);
            client.send(NewOrder {
                client_order_id: ClientOrderId(id + client.client.welcome().next_request * 10),
                ..limit(Side::Buy, 0, 101, 1)
            });
            client.await_reports(3);
            assert_eq!(client.reported().iter().map(|text| text.2).collect::<Vec<_>>(), FILLED.map(|text| text.2));
            client.client.close();
        }
    }
}

#[test]
fn a_reconnecting_client_receives_missing_reports_once() {
    for layout in [Layout::Inline, Layout::Split] {
        let mut fixture = OmsFixture::new(layout);
        let mut client = fixture.remote("anna", Since::Start);
        client.send(limit(Side::Buy, 1, 101, 1));
        client.await_reports(3);
        fixture.stop();
        fixture.start();
        client.until("it is there again", |client| {
            client.events.iter().filter(|event| matches!(event, ClientEvent::Connected(_))).count() == 2
        });
        client.send(limit(Side::Buy, 2, 101, 1));
        client.await_reports(6);
        assert_eq!(client.numbers(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(client.client.counts().gaps + client.client.counts().duplicates, 0);
        let late = fixture.remote("anna", Since::Start);
        assert_eq!(late.client.welcome().session, 1, "the first one is in use");
        late.client.close();
        client.client.close();
        let mut late = fixture.remote("anna", Since::Start);
        late.await_reports(6);
        assert_eq!(late.numbers(), [0, 1, 2, 3, 4, 5]);
    }
}

/// Returns a client whose session the OMS has ended for its silence and that has sent an order since, and the client
/// that has the session now.
fn one_that_was_silent_and_its_successor(fixture: &OmsFixture) -> (RecordingClient, RecordingClient) {
    let url = format!("unix://{}", fixture.socket().display());
    let config = RemoteConfig { heartbeat_ms: 1_000, ..RemoteConfig::new(url, "anna", "anna's password") };
    let client = Remote::connect(config).expect("it gets in");
    let mut silent = RecordingClient { client, clock: fixture.clock, heard: Vec::new(), events: Vec::new() };
    let events = &fixture.running.as_ref().expect("it runs").events;
    assert!(events.iter().any(|event| matches!(event, ServerEvent::Disconnected { session: 0, .. })));
    silent.send(limit(Side::Buy, 1, 101, 1));
    let mut successor = fixture.remote("anna", Since::Now);
    assert_eq!(successor.client.welcome().session, 0, "the session is free");
    successor.send(limit(Side::Buy, 2, 101, 1));
    successor.await_reports(3);
    (silent, successor)
}

#[test]
fn a_reconnect_does_not_take_the_session_from_another_client() {
    let fixture = OmsFixture::new(Layout::Split);
    let (mut silent, mut successor) = one_that_was_silent_and_its_successor(&fixture);
    let mut doubts = Vec::new();
    let why = loop {
        silent.client.wait(1_000_000);
        let polled = silent.client.poll(|event| match event {
            ClientEvent::InDoubt { request, .. } => doubts.push(request.client_order_id().0),
            ClientEvent::Connected(_) | ClientEvent::Disconnected { .. } => {}
            other => panic!("{other:?}"),
        });
        if let Err(why) = polled {
            break why;
        }
    };
    assert!(why.to_string().contains("another client has taken session 0"), "{why}");
    assert_eq!(doubts, [1]);
    successor.send(limit(Side::Buy, 3, 101, 1));
    successor.await_reports(6);
}

#[test]
fn requests_of_another_client_are_not_confirmed_as_own() {
    let fixture = OmsFixture::new(Layout::Split);
    let (mut silent, successor) = one_that_was_silent_and_its_successor(&fixture);
    successor.client.close();
    let gone = |event| matches!(event, ServerEvent::Disconnected { session: 0, .. });
    assert!(fixture.running.as_ref().expect("it runs").events.iter().any(gone));
    let doubtful =
        |event: &ClientEvent| matches!(event, ClientEvent::InDoubt { request, .. } if request.client_order_id().0 == 1);
    silent.until("the doubt", |silent| silent.events.iter().any(doubtful));
    assert_eq!(silent.client.welcome().next_request, 1, "as many as both have sent");
    silent.send(limit(Side::Buy, 4, 101, 1));
    silent.until("the answer", |silent| silent.reported().ends_with(&[(4, ExecType::Trade, OrdStatus::Filled)]));
}

#[test]
fn a_refused_logon_gets_the_reason() {
    let fixture = OmsFixture::new(Layout::Split);
    let url = format!("unix://{}", fixture.socket().display());
    let refused = |user: &str, password: &str, session: Option<u16>| {
        let config = RemoteConfig { session, ..RemoteConfig::new(url.clone(), user, password) };
        match Remote::connect(config).map(drop) {
            Err(ClientError::Refused { refusal, sentence }) => (refusal, sentence),
            other => panic!("{user} was not refused: {other:?}"),
        }
    };
    let (wrong, nobody) = (refused("anna", "a guess", None), refused("nobody", "a guess", None));
    assert_eq!((wrong.0, nobody.0), (Some(LogonRejectReason::Password), Some(LogonRejectReason::Password)));
    assert_eq!(wrong.1.replace("anna", "nobody"), nobody.1, "it is not told which of the two it was");
    assert_eq!(refused("anna", "anna's password", Some(2)).0, Some(LogonRejectReason::NotPermitted));
    let _first = fixture.remote("boss", Since::Now);
    assert_eq!(refused("boss", "boss's password", None).0, Some(LogonRejectReason::InUse));
}

#[test]
fn a_second_logon_takes_the_session_over() {
    let fixture = OmsFixture::new(Layout::Split);
    let url = format!("unix://{}", fixture.socket().display());
    let config =
        RemoteConfig { session: Some(0), reconnect: false, ..RemoteConfig::new(url, "anna", "anna's password") };
    let mut first = Remote::connect(config.clone()).expect("it gets in");
    let _second = Remote::connect(config).expect("it gets in, too");
    let over = loop {
        first.wait(1_000_000);
        if let Err(e) = first.poll(drop) {
            break e.to_string();
        }
    };
    assert!(over.contains("taken the session over"), "{over}");
}

#[test]
fn a_reader_only_queries_and_an_admin_kills() {
    let fixture = OmsFixture::new(Layout::Split);
    let mut eve = fixture.remote("eve", Since::Now);
    eve.send(limit(Side::Buy, 1, 101, 1));
    eve.await_reports(1);
    let ReceivedMessage::Denied(denied) = eve.heard[0].1 else { panic!("{:?}", eve.heard) };
    assert_eq!(denied.code, tickpath_oms_core::Denial::NotPermitted.code());
    let mut anna = fixture.remote("anna", Since::Now);
    anna.send(limit(Side::Buy, 1, 95, 1));
    anna.await_reports(2);
    assert_eq!(eve.status().working, 1);
    let kill =
        tickpath_oms_core::KillSwitch { scope: tickpath_oms_core::KILL_ALL, on: 1, cancel: 1, ..Default::default() };
    let mut boss = fixture.remote("boss", Since::Now);
    boss.client.admin_command(tickpath_oms_core::RecordKind::Kill.code(), kill.as_bytes()).expect("it is connected");
    anna.until("the order is canceled", |anna| {
        anna.reported().last().is_some_and(|text| text.2 == OrdStatus::Canceled)
    });
    assert_eq!(boss.status().working, 0);
    anna.send(limit(Side::Buy, 2, 95, 1));
    anna.until("a denial", |anna| matches!(anna.heard.last(), Some((_, ReceivedMessage::Denied(_)))));
    eve.client.admin_command(tickpath_oms_core::RecordKind::Kill.code(), kill.as_bytes()).expect("it is connected");
    eve.until("eve is sent away", |eve| {
        eve.events.iter().any(|event| matches!(event, ClientEvent::Disconnected { .. }))
    });
}

#[test]
fn a_client_can_replay_the_whole_day() {
    const ORDERS: u64 = 20_000;
    for layout in [Layout::Inline, Layout::Split] {
        let fixture = OmsFixture::new(layout);
        let mut client = fixture.remote("anna", Since::Start);
        for id in 1..=ORDERS {
            // Far from the market: each order is accepted and rests.
            let order = Request::New(limit(Side::Buy, id, 95, 1));
            while client.client.send(&order).is_err() {
                client.poll();
            }
        }
        client.await_reports(2 * ORDERS as usize);
        let all = std::mem::take(&mut client.heard);
        client.client.close();
        let mut again = fixture.remote("anna", Since::Start);
        again.await_reports(2 * ORDERS as usize);
        assert!(again.heard == all, "not the same");
    }
}

#[test]
fn a_sleeping_gateway_loses_no_report() {
    let fixture = OmsFixture::new(Layout::Split);
    let mut client = fixture.remote("anna", Since::Now);
    // One at a time: each is answered while the gateway goes to sleep, and no later message wakes it.
    for id in 1..=2_000 {
        client.send(limit(Side::Buy, id, 1, 1));
        client.until("the denial", |client| client.heard.len() as u64 == id);
    }
}

#[test]
fn a_lost_venue_is_reported_before_the_next_order() {
    let mut fixture = OmsFixture::new(Layout::Split);
    let mut boss = fixture.remote("boss", Since::Now);
    assert_eq!(boss.status().venues_up, 1);
    fixture.running.as_mut().expect("it runs").venue_stop.store(true, Ordering::Release);
    let from = fixture.clock.ticks();
    while boss.status().venues_up == 1 {
        assert!(fixture.clock.ns_between(from, fixture.clock.ticks()) < PATIENCE_NS as i64, "it is never told");
    }
    let mut anna = fixture.remote("anna", Since::Now);
    anna.send(limit(Side::Buy, 1, 95, 1));
    anna.await_reports(1);
    assert_eq!(boss.status().queued, 1, "it waits here, and is checked again");
}

#[test]
fn the_status_lists_the_active_kill_switches() {
    use tickpath_oms_core::{KILL_ACCOUNT, KILL_ALL, KILL_SYMBOL, KillSwitch, RecordKind};
    let fixture = OmsFixture::new(Layout::Split);
    let mut boss = fixture.remote("boss", Since::Now);
    let listed = |boss: &mut RecordingClient| {
        let count = boss.status().kill_switches;
        let list = boss.events.iter().rev().find_map(|event| match event {
            ClientEvent::KillSwitches(list) => Some(list.clone()),
            _ => None,
        });
        boss.events.clear();
        (count, list)
    };
    assert_eq!(listed(&mut boss), (0, None));
    for (scope, target, count, list) in [
        (KILL_SYMBOL, 1, 1, "symbol 1"),
        (KILL_ACCOUNT, 2, 2, "account 2, symbol 1"),
        (KILL_ALL, 0, 3, "firm, account 2, symbol 1"),
    ] {
        let kill = KillSwitch { scope, on: 1, target, ..KillSwitch::default() };
        boss.client.admin_command(RecordKind::Kill.code(), kill.as_bytes()).expect("it is connected");
        boss.until("it is on", |boss| {
            boss.events.iter().any(|event| matches!(event, ClientEvent::CommandAnswered(Ok(_))))
        });
        assert_eq!(listed(&mut boss), (count, Some(list.to_owned())));
    }
}

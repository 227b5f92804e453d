//! The client process of `orders`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tickpath_clock::{Clock, HostClock, Pacer, Rest, Wait, sleep_ns, yield_now};
use tickpath_log::Writer;
use tickpath_market::{CancelOrder, ClientOrderId, Kind, NewOrder, Price, Quantity, Request, SymbolId, TopOfBook};
use tickpath_oms_client::Since;
use zerocopy::IntoBytes;

use super::login::{Login, log_in};
use super::plan::Batch;
use super::route::{ReportKind, Route};
use crate::trade::{SYMBOL, market_config};
use tickpath_lab_harness::parent::{Heard, Parent};
use tickpath_lab_harness::samples::{save, touched_rows};
use tickpath_lab_harness::{LabError, Role, Thread};

/// Role of a client that sends batches of orders.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientRole {
    /// Its route to the OMS.
    pub entry: Entry,
    /// The topic on which it publishes the reference price; another process publishes it if there is none.
    pub market: Option<String>,
    /// The order that it sends.
    pub order: crate::trade::OrderSpec,
    /// The number of the order's instrument.
    pub symbol: u32,
    /// The process's CPU and priority.
    pub thread: Thread,
    /// Whether it sleeps until shortly before a paced request, to leave its CPU to a client beside it.
    pub sleeps: bool,
    /// The files of its stamps, a file per batch.
    pub out: PathBuf,
}

impl Role for ClientRole {
    const NAME: &'static str = "client";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        client(self, parent)
    }
}

/// A client's entry to its OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// By lanes in shared memory.
    Lanes {
        /// The prefix of their names.
        name: String,
        /// Bytes of the request lane.
        request_bytes: usize,
        /// Bytes of the report lane.
        report_bytes: usize,
    },
    /// By sessions over sockets.
    Sockets {
        /// The login of the sessions.
        login: Login,
        /// The number of sessions.
        sessions: u16,
        /// The number of sessions that send; the others are only connected.
        active: u16,
    },
}

/// The reason that a stopped bench gives for sending no more.
pub(super) const STOPPED: &str = "the bench was stopped";

/// Marks a row whose request the OMS denied.
pub(super) const DENIED: u64 = u64::MAX;

/// The client's result of a batch.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Answered {
    pub denied: u64,
    pub missed: u64,
    pub unanswered: u64,
    pub last_report: u64,
    /// The number of paced requests that left late.
    pub late: u64,
    /// The number of times that it could not hand a request over and stamped its T0 anew, as other clients do.
    #[serde(default)]
    pub restamped: u64,
    /// The number of requests sent and the reason for stopping, if not all were sent.
    #[serde(default)]
    pub broke_off: Option<(u64, String)>,
}

/// Polls of sessions with outstanding requests between two polls of another session, which has heartbeats to send.
const BEAT_EVERY: u64 = 64;

/// Interval between two polls of idle sessions: far below half a heartbeat.
const IDLE_LOOK_NS: u64 = 500_000_000;

struct Client {
    clock: HostClock,
    sessions: Vec<Session>,
    /// Indices of the sessions with outstanding requests.
    waiting: Vec<usize>,
    /// The number of polls, and the index of the last session polled for its heartbeat.
    turns: u64,
    beats: usize,
    order: NewOrder,
    wait: Wait,
    /// Set when the bench is stopped.
    stop: Arc<AtomicBool>,
    batch: Batch,
    /// T0, first report, first report of the venue.
    rows: Vec<[u64; 3]>,
    open: u64,
    answered: Answered,
}

struct Session {
    route: Route,
    /// Requests without an answer from the venue.
    open: u32,
    /// Requests without any report.
    unacked: u32,
}

/// Runs the client's process: batches until its parent has no more.
pub(crate) fn client(role: &ClientRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let order = NewOrder { symbol: SymbolId(role.symbol), ..role.order.order().map_err(LabError::Setting)? };
    role.thread.settle()?;
    let (idle, routes) = routes(&role.entry, &clock)?;
    let sessions = routes.into_iter().map(|route| Session { route, open: 0, unacked: 0 }).collect();
    let market = role.market.as_ref().map(|name| publish_reference(name, &clock, order.price)).transpose()?;
    let mut client = Client {
        clock,
        sessions,
        waiting: Vec::new(),
        turns: 0,
        beats: 0,
        order,
        wait: role.thread.wait()?,
        stop: parent.stop_flag(),
        batch: Batch::burst(0, 0),
        rows: Vec::new(),
        open: 0,
        answered: Answered::default(),
    };
    // The OMS must see the reference before the first order: a missing reference denies.
    sleep_ns(50_000_000);
    let mut pacer = Pacer::new(clock, if role.sleeps { Wait::Block } else { Wait::Yield });
    // The kernel's account of this thread begins with its first wait: before the first order.
    pacer.until(clock.ticks() + clock.calibration().ticks_of_ns(1_000_000));
    parent.ready();
    while let Some(line) = client.next_line(parent)? {
        let batch: Batch = serde_json::from_str(&line).map_err(|e| LabError::Setting(format!("no batch: {e}")))?;
        let answered = client.run(&batch, &mut pacer)?;
        save(&role.out.with_extension(batch.number.to_string()), &client.rows)?;
        parent.result(&answered);
    }
    drop(market);
    client.sessions.into_iter().for_each(|session| session.route.close());
    idle.map(Idle::stop).transpose()?;
    parent.result(&());
    Ok(())
}

/// Returns the routes of the sessions that send, and the sessions that are only connected.
fn routes(entry: &Entry, clock: &HostClock) -> Result<(Option<Idle>, Vec<Route>), LabError> {
    match entry {
        Entry::Lanes { name, request_bytes, report_bytes } => {
            Ok((None, vec![Route::lanes(name, *request_bytes, *report_bytes, clock.calibration())?]))
        }
        Entry::Sockets { login, sessions, active } => {
            let idle = sessions.checked_sub(*active).filter(|idle| *idle > 0);
            let idle = idle.map(|idle| Idle::start(clock, login, idle)).transpose()?;
            Ok((idle, log_in_all(clock, login, *active)?))
        }
    }
}

/// Logs `count` sessions in, and keeps earlier sessions alive meanwhile.
fn log_in_all(clock: &HostClock, login: &Login, count: u16) -> Result<Vec<Route>, LabError> {
    let mut routes = Vec::with_capacity(usize::from(count));
    let mut looked = clock.ticks();
    for _ in 0..count {
        routes.push(Route::Socket(log_in(login, Since::Now)?));
        if clock.ns_between(looked, clock.ticks()) > IDLE_LOOK_NS as i64 {
            look(&mut routes)?;
            looked = clock.ticks();
        }
    }
    Ok(routes)
}

/// Receives pending reports, and sends the heartbeats that are due.
fn look(routes: &mut [Route]) -> Result<(), LabError> {
    routes.iter_mut().try_for_each(|route| route.hear(usize::MAX, |_, _| {}).map(|_| ()))
}

/// Sessions that are only connected, on a thread that mostly sleeps.
struct Idle {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), LabError>>,
}

impl Idle {
    fn start(clock: &HostClock, login: &Login, count: u16) -> Result<Self, LabError> {
        let mut routes = log_in_all(clock, login, count)?;
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = stop.clone();
        let thread = std::thread::spawn(move || {
            while !theirs.load(Ordering::Relaxed) {
                look(&mut routes)?;
                sleep_ns(IDLE_LOOK_NS);
            }
            routes.into_iter().for_each(Route::close);
            Ok(())
        });
        Ok(Self { stop, thread })
    }

    fn stop(self) -> Result<(), LabError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Publishes a market whose middle is the order's price, so that the price collar is checked and passes.
pub(super) fn publish_reference(name: &str, clock: &HostClock, price: Price) -> Result<Writer, LabError> {
    let mut market = Writer::open(&market_config(name)?, clock.calibration())?;
    let one = Quantity::from_whole(1);
    let (bid, ask) = (Price(price.0 - 1), Price(price.0 + 1));
    let tick = TopOfBook { bid, bid_quantity: one, ask, ask_quantity: one, symbol: SYMBOL, ..TopOfBook::default() };
    let published = market.publish(clock.ticks(), Kind::TopOfBook.code(), tick.as_bytes());
    published.map_err(|e| LabError::Failed(format!("the reference price: {e}")))?;
    Ok(market)
}

impl Client {
    /// Returns the parent's next command, and keeps sessions over sockets alive meanwhile.
    fn next_line(&mut self, parent: &Parent) -> Result<Option<String>, LabError> {
        loop {
            match parent.hear_within(IDLE_LOOK_NS) {
                Heard::Line(line) => return Ok(Some(line)),
                Heard::Gone => return Ok(None),
                Heard::Nothing => {}
            }
            for session in &mut self.sessions {
                session.route.hear(usize::MAX, |_, _| {})?;
            }
        }
    }

    /// Sends a batch and waits for the venue's answers. If the bench is stopped or a session is lost, the answers until
    /// then count.
    fn run(&mut self, batch: &Batch, pacer: &mut Pacer<HostClock>) -> Result<Answered, LabError> {
        self.batch = *batch;
        self.rows = touched_rows(batch.count as usize);
        self.rows.resize(batch.count as usize, [0; 3]);
        self.open = batch.count;
        self.answered = Answered::default();
        self.waiting.clear();
        self.sessions.iter_mut().for_each(|session| (session.open, session.unacked) = (0, 0));
        let ticks = |ns: u64| self.clock.calibration().ticks_of_ns(ns);
        let pause = batch.interval_ns.map(ticks);
        let start = self.clock.ticks() + pause.unwrap_or(0);
        for i in 0..batch.count {
            let intended = pause.map_or(0, |pause| start + i * pause);
            if let Err(why) = self.go_on().and_then(|()| self.turn(batch, i, intended, pacer)) {
                self.open -= batch.count - i;
                self.answered.broke_off = Some((i, why.to_string()));
                break;
            }
        }
        self.sessions.iter_mut().for_each(|session| session.route.flush());
        match self.hear_all() {
            Err(_) if self.answered.broke_off.is_some() => {}
            Err(why) => self.answered.broke_off = Some((batch.count, why.to_string())),
            Ok(()) => {}
        }
        self.answered.unanswered = self.open;
        Ok(self.answered.clone())
    }

    /// Returns an error once the bench is stopped.
    fn go_on(&self) -> Result<(), LabError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Failed(STOPPED.to_owned())),
            false => Ok(()),
        }
    }

    /// Sends request number `i` at its time.
    fn turn(&mut self, batch: &Batch, i: u64, intended: u64, pacer: &mut Pacer<HostClock>) -> Result<(), LabError> {
        if intended > 0 {
            self.until(pacer, intended)?;
        }
        let request = self.request(batch, i, intended);
        self.send(i, &request)?;
        if intended > 0 {
            let sent = self.rows[i as usize][0];
            self.answered.late += u64::from(pacer.own_lateness_ns(intended, sent) > batch.late_ns());
        } else if i % 32 == 31 {
            self.hear(64)?;
        }
        Ok(())
    }

    /// Returns request number `i`; its cause is its intended send time.
    fn request(&self, batch: &Batch, i: u64, cause: u64) -> Request {
        let id = ClientOrderId(u64::from(batch.number) << 32 | (batch.first + i));
        match batch.cancels {
            None => Request::New(NewOrder { client_order_id: id, cause, ..self.order }),
            Some(group) => Request::Cancel(CancelOrder {
                client_order_id: id,
                original: ClientOrderId(u64::from(group) << 32 | i),
                symbol: self.order.symbol,
                account: self.order.account,
                cause,
                ..CancelOrder::default()
            }),
        }
    }

    /// Returns the session index of request number `i`; a cancel has its original's session.
    fn place(&self, i: u64) -> usize {
        ((self.batch.first + i) / self.batch.stride) as usize % self.sessions.len()
    }

    /// Waits until `intended`, receiving reports meanwhile.
    fn until(&mut self, pacer: &mut Pacer<HostClock>, intended: u64) -> Result<(), LabError> {
        let is_call = self.sessions[0].route.is_socket();
        let waited = pacer.until_beside(intended, |rest| {
            let has_heard = self.hear(16)? > 0;
            match rest {
                _ if has_heard => {}
                Rest::Sleep(ns) => self.sleep(ns),
                rest => rest.take(),
            }
            // Time in a system call cannot be attributed to the host.
            Ok::<_, LabError>(has_heard || is_call)
        });
        waited.map(|_| ())
    }

    /// Sends a request; T0 is before the first attempt.
    fn send(&mut self, i: u64, request: &Request) -> Result<(), LabError> {
        let place = self.place(i);
        while self.batch.in_flight.is_some_and(|most| self.sessions[place].unacked >= most) {
            if self.hear(64)? == 0 {
                self.go_on()?;
                self.pass();
            }
        }
        let may_wait = self.batch.interval_ns.is_none() && self.batch.in_flight.is_none();
        let sent = self.clock.ticks();
        self.rows[i as usize][0] = sent;
        while !self.sessions[place].route.send(sent, request, may_wait)? {
            if self.hear_at(place, 64)? == 0 && self.hear(64)? == 0 {
                self.go_on()?;
                yield_now();
            }
        }
        let session = &mut self.sessions[place];
        if session.open == 0 {
            self.waiting.push(place);
        }
        session.open += 1;
        session.unacked += 1;
        if may_wait && (self.batch.first + i) % self.batch.stride == self.batch.stride - 1 {
            session.route.flush();
        }
        Ok(())
    }

    /// Receives reports until the venue has answered every request, or no report arrives for seconds.
    fn hear_all(&mut self) -> Result<(), LabError> {
        const PATIENCE_NS: i64 = 5_000_000_000;
        let mut last = self.clock.ticks();
        while self.open > 0 {
            if self.hear(256)? > 0 {
                last = self.clock.ticks();
            } else if self.clock.ns_between(last, self.clock.ticks()) > PATIENCE_NS {
                return Ok(());
            } else {
                self.pass();
            }
        }
        Ok(())
    }

    /// Waits while no reports arrive.
    fn pass(&mut self) {
        match self.wait {
            Wait::Block => self.sleep(10_000_000),
            wait => wait.idle(),
        }
    }

    /// Sleeps for `ns`, or until a session with outstanding requests may have reports. If several have some, only one
    /// is watched, and only briefly.
    fn sleep(&mut self, ns: u64) {
        const LOOK_NS: u64 = 100_000;
        match self.waiting[..] {
            [] => sleep_ns(ns),
            [only] => self.sessions[only].route.sleep(ns),
            [first, ..] => self.sessions[first].route.sleep(ns.min(LOOK_NS)),
        }
    }

    /// Takes up to `limit` reports of the next session in turn, mostly of those with outstanding requests.
    fn hear(&mut self, limit: usize) -> Result<usize, LabError> {
        self.turns += 1;
        let place = match self.waiting.len() as u64 {
            count if count > 0 && !self.turns.is_multiple_of(BEAT_EVERY) => self.waiting[(self.turns % count) as usize],
            _ => {
                self.beats = (self.beats + 1) % self.sessions.len();
                self.beats
            }
        };
        self.hear_at(place, limit)
    }

    fn hear_at(&mut self, place: usize, limit: usize) -> Result<usize, LabError> {
        let Self { sessions, waiting, clock, rows, answered, open, batch, .. } = self;
        let Session { route, open: own, unacked } = &mut sessions[place];
        let (heard, missed) = route.hear(limit, |id: ClientOrderId, told: ReportKind| {
            let now = clock.ticks();
            answered.denied += u64::from(told == ReportKind::Denied);
            let row = (id.0 as u32 as u64).checked_sub(batch.first).and_then(|i| rows.get_mut(i as usize));
            let Some(row) = row.filter(|_| (id.0 >> 32) as u32 == batch.number) else { return };
            if row[1] == 0 {
                row[1] = now;
                *unacked -= 1;
            }
            if told == ReportKind::Pending || row[2] != 0 {
                return;
            }
            // A denial closes the request, and is not the venue's answer.
            row[2] = if told == ReportKind::OfVenue { now } else { DENIED };
            *open -= 1;
            *own -= 1;
            answered.last_report = now;
        })?;
        answered.missed += missed;
        if heard > 0 && *own == 0 {
            waiting.retain(|waits| *waits != place);
        }
        Ok(heard)
    }
}

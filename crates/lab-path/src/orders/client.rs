//! The client process of `orders`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tickpath_clock::{Clock, HostClock, IdleAction, Pacer, Wait, sleep_ns, yield_now};
use tickpath_log::Writer;
use tickpath_market::{CancelOrder, ClientOrderId, Kind, NewOrder, Price, Quantity, Request, SymbolId, TopOfBook};
use tickpath_oms_client::Since;
use zerocopy::IntoBytes;

use super::login::{BenchLogin, log_in};
use super::plan::OrderBatch;
use super::route::{ClientReportKind, SessionRoute};
use crate::trade::{SYMBOL, market_config};
use tickpath_lab_harness::parent::{Parent, ParentMessage};
use tickpath_lab_harness::samples::{preallocated_rows, save};
use tickpath_lab_harness::{LabError, ProcessRole, ThreadConfig};

/// Role of a client that sends batches of orders.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientRole {
    /// Its route to the OMS.
    pub entry: OmsAccess,
    /// The topic on which it publishes the reference price; another process publishes it if there is none.
    pub market: Option<String>,
    /// The order that it sends.
    pub order: crate::trade::OrderSpec,
    /// The number of the order's instrument.
    pub symbol: u32,
    /// The process's CPU and priority.
    pub thread: ThreadConfig,
    /// Whether it sleeps until shortly before a paced request, to leave its CPU to a client beside it.
    pub sleeps: bool,
    /// The files of its stamps, a file per batch.
    pub out: PathBuf,
}

impl ProcessRole for ClientRole {
    const NAME: &'static str = "client";

    /// Runs the client's process: batches until its parent has no more.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let order = NewOrder { symbol: SymbolId(self.symbol), ..self.order.order().map_err(LabError::Setting)? };
        self.thread.apply()?;
        let (idle, routes) = routes(&self.entry, &clock)?;
        let sessions = routes.into_iter().map(|route| BenchSession { route, open: 0, unacked: 0 }).collect();
        let market = self.market.as_ref().map(|name| publish_reference(name, &clock, order.price)).transpose()?;
        let mut client = OrdersClient {
            clock,
            sessions,
            waiting: Vec::new(),
            polls: 0,
            heartbeat_index: 0,
            order,
            wait: self.thread.wait()?,
            stop: parent.stop_flag(),
            batch: OrderBatch::burst(0, 0),
            rows: Vec::new(),
            open: 0,
            answers: BatchAnswers::default(),
        };
        // The OMS must see the reference before the first order: a missing reference denies.
        sleep_ns(50_000_000);
        let mut pacer = Pacer::new(clock, if self.sleeps { Wait::Block } else { Wait::Yield });
        // The kernel's account of this thread begins with its first wait: before the first order.
        pacer.until(clock.ticks() + clock.calibration().ticks_of_ns(1_000_000));
        parent.ready();
        while let Some(line) = client.next_line(parent)? {
            let batch: OrderBatch =
                serde_json::from_str(&line).map_err(|e| LabError::Setting(format!("no batch: {e}")))?;
            let answered = client.run(&batch, &mut pacer)?;
            save(&self.out.with_extension(batch.number.to_string()), &client.rows)?;
            parent.result(&answered);
        }
        drop(market);
        client.sessions.into_iter().for_each(|session| session.route.close());
        idle.map(IdleSessions::stop).transpose()?;
        parent.result(&());
        Ok(())
    }
}

/// A client's entry to its OMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmsAccess {
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
        login: BenchLogin,
        /// The number of sessions.
        sessions: u16,
        /// The number of sessions that send; the others are only connected.
        active: u16,
    },
}

/// The reason that a stopped bench gives for sending no more.
pub(super) const BENCH_STOPPED: &str = "the bench was stopped";

/// Marks a row whose request the OMS denied.
pub(super) const DENIED: u64 = u64::MAX;

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct BatchAnswers {
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
const HEARTBEAT_EVERY: u64 = 64;

/// Interval between two polls of idle sessions: far below half a heartbeat.
const IDLE_POLL_NS: u64 = 500_000_000;

struct OrdersClient {
    clock: HostClock,
    sessions: Vec<BenchSession>,
    /// Indices of the sessions with outstanding requests.
    waiting: Vec<usize>,
    /// The number of polls, and the index of the last session polled for its heartbeat.
    polls: u64,
    heartbeat_index: usize,
    order: NewOrder,
    wait: Wait,
    stop: Arc<AtomicBool>,
    batch: OrderBatch,
    /// T0, first report, first report of the venue.
    rows: Vec<[u64; 3]>,
    open: u64,
    answers: BatchAnswers,
}

struct BenchSession {
    route: SessionRoute,
    /// Requests without an answer from the venue.
    open: u32,
    /// Requests without any report.
    unacked: u32,
}

/// Returns the routes of the sessions that send, and the sessions that are only connected.
fn routes(entry: &OmsAccess, clock: &HostClock) -> Result<(Option<IdleSessions>, Vec<SessionRoute>), LabError> {
    match entry {
        OmsAccess::Lanes { name, request_bytes, report_bytes } => {
            Ok((None, vec![SessionRoute::lanes(name, *request_bytes, *report_bytes, clock.calibration())?]))
        }
        OmsAccess::Sockets { login, sessions, active } => {
            let idle = sessions.checked_sub(*active).filter(|idle| *idle > 0);
            let idle = idle.map(|idle| IdleSessions::start(clock, login, idle)).transpose()?;
            Ok((idle, log_in_all(clock, login, *active)?))
        }
    }
}

/// Logs `count` sessions in, and keeps earlier sessions alive meanwhile.
fn log_in_all(clock: &HostClock, login: &BenchLogin, count: u16) -> Result<Vec<SessionRoute>, LabError> {
    let mut routes = Vec::with_capacity(usize::from(count));
    let mut looked = clock.ticks();
    for _ in 0..count {
        routes.push(SessionRoute::Socket(log_in(login, Since::Now)?));
        if clock.ns_between(looked, clock.ticks()) > IDLE_POLL_NS as i64 {
            poll_routes(&mut routes)?;
            looked = clock.ticks();
        }
    }
    Ok(routes)
}

/// Receives pending reports, and sends the heartbeats that are due.
fn poll_routes(routes: &mut [SessionRoute]) -> Result<(), LabError> {
    routes.iter_mut().try_for_each(|route| route.receive(usize::MAX, |_, _| {}).map(|_| ()))
}

/// Sessions that are only connected, on a thread that mostly sleeps.
struct IdleSessions {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), LabError>>,
}

impl IdleSessions {
    fn start(clock: &HostClock, login: &BenchLogin, count: u16) -> Result<Self, LabError> {
        let mut routes = log_in_all(clock, login, count)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stop_flag = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stop_flag.load(Ordering::Relaxed) {
                poll_routes(&mut routes)?;
                sleep_ns(IDLE_POLL_NS);
            }
            routes.into_iter().for_each(SessionRoute::close);
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

impl OrdersClient {
    /// Returns the parent's next command, and keeps sessions over sockets alive meanwhile.
    fn next_line(&mut self, parent: &Parent) -> Result<Option<String>, LabError> {
        loop {
            match parent.receive_timeout(IDLE_POLL_NS) {
                ParentMessage::Line(line) => return Ok(Some(line)),
                ParentMessage::Closed => return Ok(None),
                ParentMessage::Timeout => {}
            }
            for session in &mut self.sessions {
                session.route.receive(usize::MAX, |_, _| {})?;
            }
        }
    }

    /// Sends a batch and waits for the venue's answers. If the bench is stopped or a session is lost, the answers until
    /// then count.
    fn run(&mut self, batch: &OrderBatch, pacer: &mut Pacer<HostClock>) -> Result<BatchAnswers, LabError> {
        self.batch = *batch;
        self.rows = preallocated_rows(batch.count as usize);
        self.rows.resize(batch.count as usize, [0; 3]);
        self.open = batch.count;
        self.answers = BatchAnswers::default();
        self.waiting.clear();
        self.sessions.iter_mut().for_each(|session| (session.open, session.unacked) = (0, 0));
        let ticks = |ns: u64| self.clock.calibration().ticks_of_ns(ns);
        let pause = batch.interval_ns.map(ticks);
        let start = self.clock.ticks() + pause.unwrap_or(0);
        for i in 0..batch.count {
            let intended = pause.map_or(0, |pause| start + i * pause);
            if let Err(why) = self.check_running().and_then(|()| self.send_at(batch, i, intended, pacer)) {
                self.open -= batch.count - i;
                self.answers.broke_off = Some((i, why.to_string()));
                break;
            }
        }
        self.sessions.iter_mut().for_each(|session| session.route.flush());
        match self.receive_all() {
            Err(_) if self.answers.broke_off.is_some() => {}
            Err(why) => self.answers.broke_off = Some((batch.count, why.to_string())),
            Ok(()) => {}
        }
        self.answers.unanswered = self.open;
        Ok(self.answers.clone())
    }

    /// Returns an error once the bench is stopped.
    fn check_running(&self) -> Result<(), LabError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Failed(BENCH_STOPPED.to_owned())),
            false => Ok(()),
        }
    }

    /// Sends request number `i` at its time.
    fn send_at(
        &mut self,
        batch: &OrderBatch,
        i: u64,
        intended: u64,
        pacer: &mut Pacer<HostClock>,
    ) -> Result<(), LabError> {
        if intended > 0 {
            self.wait_until(pacer, intended)?;
        }
        let request = self.request(batch, i, intended);
        self.send(i, &request)?;
        if intended > 0 {
            let sent = self.rows[i as usize][0];
            self.answers.late += u64::from(pacer.own_lateness_ns(intended, sent) > batch.late_ns());
        } else if i % 32 == 31 {
            self.receive(64)?;
        }
        Ok(())
    }

    /// Returns request number `i`; its cause is its intended send time.
    fn request(&self, batch: &OrderBatch, i: u64, cause: u64) -> Request {
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

    /// Waits until `intended`, receiving reports meanwhile.
    fn wait_until(&mut self, pacer: &mut Pacer<HostClock>, intended: u64) -> Result<(), LabError> {
        let is_call = self.sessions[0].route.is_socket();
        let waited = pacer.until_with_work(intended, |rest| {
            let has_heard = self.receive(16)? > 0;
            match rest {
                _ if has_heard => {}
                IdleAction::Sleep(ns) => self.sleep(ns),
                rest => rest.perform(),
            }
            // Time in a system call cannot be attributed to the host.
            Ok::<_, LabError>(has_heard || is_call)
        });
        waited.map(|_| ())
    }

    /// Sends a request; T0 is before the first attempt.
    fn send(&mut self, i: u64, request: &Request) -> Result<(), LabError> {
        // A cancel has its original's session.
        let session_index = ((self.batch.first + i) / self.batch.stride) as usize % self.sessions.len();
        while self.batch.in_flight.is_some_and(|max| self.sessions[session_index].unacked >= max) {
            if self.receive(64)? == 0 {
                self.check_running()?;
                self.idle();
            }
        }
        let may_wait = self.batch.interval_ns.is_none() && self.batch.in_flight.is_none();
        let sent = self.clock.ticks();
        self.rows[i as usize][0] = sent;
        while !self.sessions[session_index].route.send(sent, request, may_wait)? {
            if self.receive_from(session_index, 64)? == 0 && self.receive(64)? == 0 {
                self.check_running()?;
                yield_now();
            }
        }
        let session = &mut self.sessions[session_index];
        if session.open == 0 {
            self.waiting.push(session_index);
        }
        session.open += 1;
        session.unacked += 1;
        if may_wait && (self.batch.first + i) % self.batch.stride == self.batch.stride - 1 {
            session.route.flush();
        }
        Ok(())
    }

    /// Receives reports until the venue has answered every request, or no report arrives for seconds.
    fn receive_all(&mut self) -> Result<(), LabError> {
        const REPORT_TIMEOUT_NS: i64 = 5_000_000_000;
        let mut last = self.clock.ticks();
        while self.open > 0 {
            if self.receive(256)? > 0 {
                last = self.clock.ticks();
            } else if self.clock.ns_between(last, self.clock.ticks()) > REPORT_TIMEOUT_NS {
                return Ok(());
            } else {
                self.idle();
            }
        }
        Ok(())
    }

    fn idle(&mut self) {
        match self.wait {
            Wait::Block => self.sleep(10_000_000),
            wait => wait.idle(),
        }
    }

    /// Sleeps for `ns`, or until a session with outstanding requests may have reports. If several have some, only one
    /// is watched, and only briefly.
    fn sleep(&mut self, ns: u64) {
        const CHECK_INTERVAL_NS: u64 = 100_000;
        match self.waiting[..] {
            [] => sleep_ns(ns),
            [only] => self.sessions[only].route.sleep(ns),
            [first, ..] => self.sessions[first].route.sleep(ns.min(CHECK_INTERVAL_NS)),
        }
    }

    /// Takes up to `limit` reports of the next session in turn, mostly of those with outstanding requests.
    fn receive(&mut self, limit: usize) -> Result<usize, LabError> {
        self.polls += 1;
        let session_index = match self.waiting.len() as u64 {
            count if count > 0 && !self.polls.is_multiple_of(HEARTBEAT_EVERY) => {
                self.waiting[(self.polls % count) as usize]
            }
            _ => {
                self.heartbeat_index = (self.heartbeat_index + 1) % self.sessions.len();
                self.heartbeat_index
            }
        };
        self.receive_from(session_index, limit)
    }

    fn receive_from(&mut self, session_index: usize, limit: usize) -> Result<usize, LabError> {
        let Self { sessions, waiting, clock, rows, answers: answered, open, batch, .. } = self;
        let BenchSession { route, open: own, unacked } = &mut sessions[session_index];
        let (received, missed) = route.receive(limit, |id: ClientOrderId, kind: ClientReportKind| {
            let now = clock.ticks();
            answered.denied += u64::from(kind == ClientReportKind::Denied);
            let row = (id.0 as u32 as u64).checked_sub(batch.first).and_then(|i| rows.get_mut(i as usize));
            let Some(row) = row.filter(|_| (id.0 >> 32) as u32 == batch.number) else { return };
            if row[1] == 0 {
                row[1] = now;
                *unacked -= 1;
            }
            if kind == ClientReportKind::Pending || row[2] != 0 {
                return;
            }
            // A denial closes the request, and is not the venue's answer.
            row[2] = if kind == ClientReportKind::Venue { now } else { DENIED };
            *open -= 1;
            *own -= 1;
            answered.last_report = now;
        })?;
        answered.missed += missed;
        if received > 0 && *own == 0 {
            waiting.retain(|waits| *waits != session_index);
        }
        Ok(received)
    }
}

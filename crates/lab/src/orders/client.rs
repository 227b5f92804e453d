//! The client process of `orders`, and the one that walks caches full.

use tickpath_clock::{Clock, HostClock, Wait, relax, yield_now};
use tickpath_log::{Next, PublishError, Reader, Writer};
use tickpath_market::{
    CancelOrder, ClientOrderId, ExecType, ExecutionReport, Kind, NewOrder, OrderDenied, Price, Quantity, Request,
    TopOfBook,
};
use tickpath_oms::SessionLanes;
use zerocopy::{FromBytes, IntoBytes};

use super::{Answered, Batch, DENIED};
use crate::LabError;
use crate::child::Parent;
use crate::role::{ClientRole, EvictorRole};
use crate::samples::{save, touched_rows};
use crate::trade::{SYMBOL, lanes, market_config};

/// A paced request that goes out later than this is late.
const LATE_NS: i64 = 10_000;

struct Client {
    clock: HostClock,
    requests: Writer,
    reports: Reader,
    order: NewOrder,
    wait: Wait,
    number: u32,
    /// T0, first report, first report of the venue.
    rows: Vec<[u64; 3]>,
    first: u64,
    open: u64,
    answered: Answered,
}

/// The client's life: batches until its parent has no more.
pub(crate) fn client(role: &ClientRole, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    let lanes = lanes(&role.lanes, role.request_bytes, role.report_bytes);
    let SessionLanes { requests, reports } = lanes.join_session(0, clock.calibration())?;
    let order = role.order.order().map_err(LabError::Setting)?;
    let mut market = Writer::open(&market_config(&role.market)?, clock.calibration())?;
    role.thread.settle()?;
    publish_reference(&mut market, &clock, order.price)?;
    let wait = role.thread.wait()?;
    let mut client = Client {
        clock,
        requests,
        reports,
        order,
        wait,
        number: 0,
        rows: Vec::new(),
        first: 0,
        open: 0,
        answered: Answered::default(),
    };
    // The reference must be seen before the first order: a missing one denies.
    tickpath_clock::sleep_ns(50_000_000);
    parent.ready();
    while let Some(line) = parent.hear() {
        let batch: Batch = serde_json::from_str(&line).map_err(|e| LabError::Setting(format!("no batch: {e}")))?;
        let answered = client.run(&batch)?;
        save(&role.out.with_extension(batch.number.to_string()), &client.rows)?;
        parent.result(&answered);
    }
    parent.result(&());
    Ok(())
}

/// A market whose middle is the order's price, so that the price collar is checked and passes.
fn publish_reference(market: &mut Writer, clock: &HostClock, price: Price) -> Result<(), LabError> {
    let one = Quantity::from_whole(1);
    let (bid, ask) = (Price(price.0 - 1), Price(price.0 + 1));
    let tick = TopOfBook { bid, bid_quantity: one, ask, ask_quantity: one, symbol: SYMBOL, ..TopOfBook::default() };
    let published = market.publish(clock.ticks(), Kind::TopOfBook.code(), tick.as_bytes());
    published.map(|_| ()).map_err(|e| LabError::Failed(format!("the reference price: {e}")))
}

impl Client {
    /// Sends a batch and waits for the venue's answers.
    fn run(&mut self, batch: &Batch) -> Result<Answered, LabError> {
        self.number = batch.number;
        self.first = batch.first;
        self.rows = touched_rows(batch.count as usize);
        self.rows.resize(batch.count as usize, [0; 3]);
        self.open = batch.count;
        self.answered = Answered::default();
        let ticks = |ns: u64| self.clock.calibration().ticks_of_ns(ns);
        let pause = batch.interval_ns.map(ticks);
        let start = self.clock.ticks() + pause.unwrap_or(0);
        for i in 0..batch.count {
            let intended = pause.map_or(0, |pause| start + i * pause);
            if intended > 0 {
                self.until(intended)?;
                let late_ns = self.clock.ns_between(intended, self.clock.ticks());
                self.answered.late += u64::from(late_ns > LATE_NS);
            }
            let request = self.request(batch, i, intended);
            self.send(i, &request)?;
            if pause.is_none() && i % 32 == 31 {
                self.hear(64)?;
            }
        }
        self.hear_all()?;
        self.answered.unanswered = self.open;
        Ok(self.answered.clone())
    }

    /// Request number `i`; its cause is the moment at which it was meant to go.
    fn request(&self, batch: &Batch, i: u64, cause: u64) -> Request {
        let id = ClientOrderId(u64::from(batch.number) << 32 | (batch.first + i));
        match batch.cancels {
            None => Request::New(NewOrder { client_order_id: id, cause, ..self.order }),
            Some(group) => Request::Cancel(CancelOrder {
                client_order_id: id,
                original: ClientOrderId(u64::from(group) << 32 | i),
                symbol: SYMBOL,
                account: self.order.account,
                cause,
                ..CancelOrder::default()
            }),
        }
    }

    /// Passes the time until a moment, hearing reports meanwhile, and spinning for the last microseconds.
    fn until(&mut self, intended: u64) -> Result<(), LabError> {
        let spin = self.clock.calibration().ticks_of_ns(20_000);
        loop {
            let left = intended.wrapping_sub(self.clock.ticks()) as i64;
            if left <= 0 {
                return Ok(());
            }
            if self.hear(16)? == 0 {
                match left as u64 > spin {
                    true => yield_now(),
                    false => relax(),
                }
            }
        }
    }

    /// Sends one request; T0 is before the first attempt.
    fn send(&mut self, i: u64, request: &Request) -> Result<(), LabError> {
        let sent = self.clock.ticks();
        loop {
            match self.requests.publish(sent, request.kind().code(), request.as_bytes()) {
                Ok(_) => {
                    self.rows[i as usize][0] = sent;
                    return Ok(());
                }
                Err(PublishError::Full) => {
                    if self.hear(64)? == 0 {
                        yield_now();
                    }
                }
                Err(e) => return Err(LabError::Failed(format!("the OMS's lane: {e}"))),
            }
        }
    }

    /// Hears reports until every request is answered by the venue, or nothing comes for seconds.
    fn hear_all(&mut self) -> Result<(), LabError> {
        const PATIENCE_NS: i64 = 5_000_000_000;
        let mut last = self.clock.ticks();
        while self.open > 0 {
            if self.hear(256)? > 0 {
                last = self.clock.ticks();
            } else if self.clock.ns_between(last, self.clock.ticks()) > PATIENCE_NS {
                return Ok(());
            } else {
                self.reports.wait(self.wait, 10_000_000);
            }
        }
        Ok(())
    }

    /// Takes up to `limit` reports.
    fn hear(&mut self, limit: usize) -> Result<usize, LabError> {
        let Self { reports, clock, rows, answered, open, number, first, .. } = self;
        let mut take = |id: ClientOrderId, told: Told| {
            let now = clock.ticks();
            let row = (id.0 as u32 as u64).checked_sub(*first).and_then(|i| rows.get_mut(i as usize));
            let Some(row) = row.filter(|_| (id.0 >> 32) as u32 == *number) else { return };
            if row[1] == 0 {
                row[1] = now;
            }
            if told == Told::OnItsWay || row[2] != 0 {
                return;
            }
            // A denial closes the request, and is no answer of the venue.
            row[2] = if told == Told::ByVenue { now } else { DENIED };
            *open -= 1;
            answered.last_report = now;
        };
        let (mut denied, mut missed) = (0, 0);
        let heard = reports.drain(limit, |next| match next {
            Next::Message(message) if message.kind == Kind::OrderDenied.code() => {
                if let Ok(report) = OrderDenied::read_from_bytes(message.payload) {
                    denied += 1;
                    take(report.client_order_id, Told::Denied);
                }
            }
            Next::Message(message) => {
                if let Ok(report) = ExecutionReport::read(message.kind, message.payload) {
                    let told = if is_of_venue(&report) { Told::ByVenue } else { Told::OnItsWay };
                    take(report.client_order_id, told);
                }
            }
            Next::Gap(gone) => missed += gone,
            Next::Empty => {}
        });
        self.answered.denied += denied;
        self.answered.missed += missed;
        heard.map_err(|e| LabError::Failed(format!("the report log: {e}")))
    }
}

/// What a report tells its client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    OnItsWay,
    ByVenue,
    Denied,
}

/// True if a report tells what the venue did; the OMS's own say that something is on its way.
pub(crate) fn is_of_venue(report: &ExecutionReport) -> bool {
    match ExecType::from_code(report.exec_type) {
        Some(ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace) | None => false,
        Some(_) => true,
    }
}

/// The evictor's life: walks more memory than the caches hold, whenever it is told to.
pub(crate) fn evictor(role: &EvictorRole, parent: &Parent) -> Result<(), LabError> {
    /// More than any last-level cache share of a core.
    const WORDS: usize = (128 << 20) / 8;
    tickpath_clock::pin_to_cpu(role.cpu)?;
    let mut memory = vec![1u64; WORDS];
    parent.ready();
    while parent.hear().is_some() {
        for line in memory.chunks_mut(8) {
            line[0] = line[0].wrapping_mul(3);
        }
        std::hint::black_box(&memory);
        parent.result(&());
    }
    Ok(())
}

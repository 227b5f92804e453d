//! A line that is driven by hand: each request is sent, and its answer awaited.

use tickpath_clock::{Clock, HostClock, sleep_ns, utc_ns};
use tickpath_lab_report::duration;
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderType, ReplaceOrder,
    Request, Side, StatusRequest, TimeInForce,
};
use tickpath_oms_text::code_name;
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};

use super::probe_order::ProbeOrder;

/// Time limits of a connect and of an answer, in nanoseconds.
const CONNECT_NS: i64 = 20_000_000_000;
const ANSWER_NS: i64 = 15_000_000_000;
/// Pause between two polls.
const PAUSE_NS: u64 = 200_000;

const ACCOUNT: AccountId = AccountId(1);

/// A line, and what it has reported.
pub struct LineProbe {
    clock: HostClock,
    line: Box<dyn Line>,
    resume: ResumeState,
    is_up: bool,
    /// Reason of the last loss of the connection.
    lost: Option<String>,
    reports: Vec<ExecutionReport>,
    /// Last text beside a report.
    text: String,
    /// Id of the next order or request. No earlier check has used it.
    next_id: u64,
    /// Id of the order.
    order: u64,
}

/// Reasons why an order is not accepted.
pub enum ProbeFailure {
    /// The order does not work.
    Refused(String),
    /// The order may work.
    Unanswered(String),
}

impl LineProbe {
    /// Takes a line that was never connected.
    pub fn new(clock: HostClock, line: Box<dyn Line>) -> Self {
        let now_ns = utc_ns();
        let resume = ResumeState { journal: now_ns, oms: now_ns, incarnation: 1, next_request: 0, next_report: 0 };
        // Microseconds, which fit every exchange's texts.
        let (next_id, text) = (now_ns / 1_000, String::new());
        Self { clock, line, resume, is_up: false, lost: None, reports: Vec::new(), text, next_id, order: 0 }
    }

    /// Connects, and ends an earlier connection. Returns the time until the line is up, as text.
    pub fn connect(&mut self) -> Result<String, String> {
        (self.is_up, self.lost) = (false, None);
        let begin = self.clock.ticks();
        self.line.connect(&self.resume);
        let is_up = self.wait(CONNECT_NS, |probe| probe.is_up.then_some(()));
        match (is_up, self.lost.take()) {
            (Some(()), _) => Ok(self.time_since(begin)),
            (None, Some(why)) => Err(why),
            (None, None) => Err(format!("{} has not answered in time; check the address", self.line.address())),
        }
    }

    /// Places the order, post-only.
    pub fn place(&mut self, order: &ProbeOrder) -> Result<String, ProbeFailure> {
        let (begin, id) = (self.clock.ticks(), self.take_id());
        self.order = id;
        let request = Request::New(NewOrder {
            client_order_id: ClientOrderId(id),
            price: order.price,
            quantity: order.quantity,
            symbol: order.instrument.symbol,
            account: ACCOUNT,
            side: Side::Buy.code(),
            order_type: OrderType::Limit.code(),
            time_in_force: TimeInForce::GoodTillCancel.code(),
            instructions: NewOrder::POST_ONLY,
            ..NewOrder::default()
        });
        let ends = [ExecType::New, ExecType::Trade, ExecType::Rejected, ExecType::Canceled, ExecType::Expired];
        let answer = self.request(&request, |report| is_one_of(report, id, &ends)).map_err(ProbeFailure::Unanswered)?;
        match ExecType::from_code(answer.exec_type) {
            Some(ExecType::New) => Ok(self.time_since(begin)),
            Some(ExecType::Trade) => {
                Err(ProbeFailure::Unanswered("the order has traded, though it is post-only".to_owned()))
            }
            _ => Err(ProbeFailure::Refused(self.refusal(&answer))),
        }
    }

    /// Gives the order its other price.
    pub fn amend(&mut self, order: &ProbeOrder) -> Result<String, String> {
        let (begin, id) = (self.clock.ticks(), self.take_id());
        let request = Request::Replace(ReplaceOrder {
            client_order_id: ClientOrderId(id),
            original: ClientOrderId(self.order),
            price: order.amended,
            quantity: order.quantity,
            symbol: order.instrument.symbol,
            account: ACCOUNT,
            ..ReplaceOrder::default()
        });
        self.change(&request, ExecType::Replaced, begin)
    }

    /// Asks for the order, and checks that it works.
    pub fn status(&mut self, order: &ProbeOrder) -> Result<String, String> {
        let id = self.take_id();
        let request = Request::Status(StatusRequest {
            client_order_id: ClientOrderId(id),
            original: ClientOrderId(self.order),
            symbol: order.instrument.symbol,
            account: ACCOUNT,
            ..StatusRequest::default()
        });
        let is_answer = |report: &ExecutionReport| {
            report.client_order_id.0 == id && report.exec_type == ExecType::OrderStatus.code()
        };
        let answer = self.request(&request, is_answer)?;
        let works = answer.order_id.0 == self.order && answer.status == OrdStatus::New.code();
        if works {
            return Ok(format!("the order works, {} at {}", answer.leaves_quantity, answer.price));
        }
        let known = OrdStatus::from_code(answer.status).filter(|_| answer.order_id.0 == self.order);
        let state = known.map_or("unknown".to_owned(), code_name);
        Err(format!("the order should work, and is {state} at the exchange; {}", self.refusal(&answer)))
    }

    /// Cancels the order.
    pub fn cancel(&mut self, order: &ProbeOrder) -> Result<String, String> {
        let (begin, id) = (self.clock.ticks(), self.take_id());
        let request = Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(id),
            original: ClientOrderId(self.order),
            symbol: order.instrument.symbol,
            account: ACCOUNT,
            ..CancelOrder::default()
        });
        self.change(&request, ExecType::Canceled, begin)
    }

    /// Sends a cancel or a replace, and awaits its effect or its refusal.
    fn change(&mut self, request: &Request, effect: ExecType, begin: u64) -> Result<String, String> {
        let order = self.order;
        let ends = [effect, ExecType::CancelRejected];
        let answer = self.request(request, |report| is_one_of(report, order, &ends))?;
        if answer.exec_type == effect.code() { Ok(self.time_since(begin)) } else { Err(self.refusal(&answer)) }
    }

    /// Sends a request, and returns the first report behind it that is an answer.
    fn request(
        &mut self,
        request: &Request,
        is_answer: impl Fn(&ExecutionReport) -> bool,
    ) -> Result<ExecutionReport, String> {
        let before = self.reports.len();
        self.text.clear();
        self.lost = None;
        let mut sent = Err(LineSendError::Full);
        self.wait(ANSWER_NS, |probe| {
            sent = probe.line.send(probe.resume.next_request, probe.clock.ticks(), request);
            (sent != Err(LineSendError::Full)).then_some(())
        });
        sent.map_err(|why| self.lost.take().unwrap_or_else(|| why.to_string()))?;
        self.resume.next_request += 1;
        let answer =
            self.wait(ANSWER_NS, |probe| probe.reports[before..].iter().copied().find(|found| is_answer(found)));
        // The text of a report comes behind it.
        self.poll_once();
        answer.ok_or_else(|| self.lost.take().unwrap_or_else(|| "no answer has arrived in time".to_owned()))
    }

    /// Polls until there is a result, the connection is lost, or the time is over.
    fn wait<T>(&mut self, limit_ns: i64, mut result: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        let begin = self.clock.ticks();
        loop {
            self.poll_once();
            let found = result(self);
            let is_over = self.lost.is_some() || self.clock.ns_between(begin, self.clock.ticks()) > limit_ns;
            if found.is_some() || is_over {
                return found;
            }
            sleep_ns(PAUSE_NS);
        }
    }

    fn poll_once(&mut self) {
        let Self { line, resume, is_up, reports, text, .. } = self;
        let polled = line.poll(&mut |event| match event {
            LineEvent::Up { .. } => *is_up = true,
            LineEvent::Acknowledged(_) => {}
            LineEvent::Report { number, report, .. } => {
                reports.push(*report);
                resume.next_report = number + 1;
            }
            LineEvent::Detail { number, detail, .. } => {
                if !detail.text().is_empty() {
                    *text = detail.text().into_owned();
                }
                resume.next_report = number + 1;
            }
        });
        if let Err(ConnectionLost(why)) = polled {
            (self.is_up, self.lost) = (false, Some(why));
        }
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn refusal(&self, report: &ExecutionReport) -> String {
        let text = if self.text.is_empty() { "without a text" } else { &self.text };
        format!("the exchange answers with reason {}, {text}", report.reason)
    }

    fn time_since(&self, begin: u64) -> String {
        duration(self.clock.ns_between(begin, self.clock.ticks()).max(0) as f64)
    }
}

/// Returns whether a report is an event of an order, of one of these kinds.
fn is_one_of(report: &ExecutionReport, order: u64, kinds: &[ExecType]) -> bool {
    report.order_id.0 == order && kinds.iter().any(|kind| kind.code() == report.exec_type)
}

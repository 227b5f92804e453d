//! A line to a venue that fills each order to buy at once and rejects each order to sell, with details beside its
//! reports. At each connect it reports all fills again, as a line to an exchange does. The tests of `capi` include this
//! file.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use tickpath_market::{
    ExecId, ExecType, ExecutionReport, Liquidity, NewOrder, OrdStatus, OrderId, ReportDetail, Request, Side, VenueId,
};
use tickpath_oms_runtime::{LineFactory, LineId, OmsLineConfig};
use tickpath_venue::{ConnectionLost, Line, LineEvent, LineSendError, ResumeState};

/// Fee of each fill, in 10⁻¹⁶ of its currency: more than fits in 64 bits.
pub const FEE: i128 = 1_234_567_890_123_456_789_012;
pub const FEE_CURRENCY: &str = "USDT";
/// Times of each report at the venue, in nanoseconds since the Unix epoch.
pub const RECEIVED_NS: u64 = 1_785_000_000_000_000_001;
pub const SENT_NS: u64 = 1_785_000_000_000_000_002;
/// Reason of each rejection.
pub const REASON: &str = "this venue sells nothing";

const VENUE: VenueId = VenueId(1);

/// The line; clones share its state.
#[derive(Clone, Default)]
pub struct DetailLine(Arc<Mutex<DetailLineState>>);

#[derive(Default)]
struct DetailLineState {
    /// State of the OMS at a connect whose end was not reported yet.
    connecting: Option<ResumeState>,
    is_up: bool,
    next_request: u64,
    next_report: u64,
    waiting: VecDeque<(ExecutionReport, Option<ReportDetail>)>,
    fills: Vec<(ExecutionReport, Option<ReportDetail>)>,
}

impl DetailLine {
    /// Returns the configuration of an OMS whose venue is reached by this line alone.
    pub fn config(&self) -> OmsLineConfig {
        let line = self.clone();
        OmsLineConfig {
            id: LineId { venue: VENUE, line: 0 },
            open: LineFactory::new(move || Ok(Box::new(line.clone()) as Box<dyn Line>)),
            rate_per_second: 0,
            window: 100,
            lost_after_ns: 10_000_000_000,
        }
    }

    fn state(&self) -> MutexGuard<'_, DetailLineState> {
        self.0.lock().expect("no thread panics with it")
    }
}

impl DetailLineState {
    fn answer(&mut self, new: &NewOrder) {
        let id = self.fills.len() as u64 + 1;
        let accepted = ExecutionReport {
            order_id: OrderId(new.client_order_id.0),
            client_order_id: new.client_order_id,
            venue_sequence: 1,
            price: new.price,
            leaves_quantity: new.quantity,
            symbol: new.symbol,
            account: new.account,
            venue: VENUE,
            exec_type: ExecType::New.code(),
            status: OrdStatus::New.code(),
            side: new.side,
            ..ExecutionReport::default()
        };
        let detail = ReportDetail {
            order_id: accepted.order_id,
            venue_received_ns: RECEIVED_NS,
            venue_sent_ns: SENT_NS,
            ..ReportDetail::default()
        };
        if new.side == Side::Sell.code() {
            let (exec_type, status) = (ExecType::Rejected.code(), OrdStatus::Rejected.code());
            let rejected =
                ExecutionReport { exec_type, status, reason: 3, leaves_quantity: Default::default(), ..accepted };
            return self.waiting.push_back((rejected, Some(detail.with_text(REASON))));
        }
        let filled = ExecutionReport {
            exec_id: ExecId(id),
            venue_sequence: 2,
            last_price: new.price,
            last_quantity: new.quantity,
            cumulative_quantity: new.quantity,
            leaves_quantity: Default::default(),
            exec_type: ExecType::Trade.code(),
            status: OrdStatus::Filled.code(),
            ..accepted
        };
        let detail = ReportDetail {
            exec_id: filled.exec_id,
            fee: FEE.to_le_bytes(),
            fee_currency: FEE_CURRENCY.parse().expect("it is a currency"),
            liquidity: Liquidity::Taker.code(),
            ..detail
        };
        self.fills.push((filled, Some(detail)));
        self.waiting.extend([(accepted, None), (filled, Some(detail))]);
    }
}

impl Line for DetailLine {
    fn address(&self) -> String {
        "a line with details".to_owned()
    }

    fn connect(&mut self, resume: &ResumeState) {
        let mut state = self.state();
        (state.connecting, state.is_up) = (Some(*resume), false);
        state.waiting = state.fills.iter().copied().collect();
    }

    fn send(&mut self, number: u64, _stamp: u64, request: &Request) -> Result<(), LineSendError> {
        let mut state = self.state();
        if !state.is_up {
            return Err(LineSendError::Down);
        }
        state.next_request = number + 1;
        if let Request::New(new) = request {
            state.answer(new);
        }
        Ok(())
    }

    fn confirm(&mut self, _next_report: u64) {}

    fn poll(&mut self, take: &mut dyn FnMut(LineEvent<'_>)) -> Result<usize, ConnectionLost> {
        let mut state = self.state();
        if let Some(resume) = state.connecting.take() {
            (state.is_up, state.next_request, state.next_report) = (true, resume.next_request, resume.next_report);
            take(LineEvent::Up { next_request: Some(resume.next_request), next_report: Some(resume.next_report) });
            return Ok(1);
        }
        if !state.is_up || state.waiting.is_empty() {
            return Ok(0);
        }
        take(LineEvent::Acknowledged(state.next_request));
        let mut done = 0;
        while let Some((report, detail)) = state.waiting.pop_front() {
            take(LineEvent::Report { number: state.next_report, stamp: 0, report: &report });
            state.next_report += 1;
            if let Some(detail) = detail {
                take(LineEvent::Detail { number: state.next_report, stamp: 0, detail: &detail });
                state.next_report += 1;
            }
            done += 1;
        }
        Ok(done)
    }

    fn warm_up(&mut self) {}

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

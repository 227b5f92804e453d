//! The way of a request through either API, with the faults that it may meet.
//!
//! ```text
//!   weight, fault 429 ──> key ──> signature ──> timestamp ──> parameters ──> answer ──> fault -1007, -1006
//! ```

use tickpath_clock::utc_ns;
use tickpath_venue_sim_web::{FaultDice, SimDesk, WebFaults};

use crate::calls::{AccountAnswer, ApiCall, CallAnswer};
use crate::codes::{ApiError, Code};
use crate::limits::too_many_requests;
use crate::params::RequestParams;
use crate::sign::{KeyRing, check_time};
use crate::spot::{CallContext, SpotMarket};

const MILLISECOND_NS: i64 = 1_000_000;
/// Time after which a request may be sent again that the fault of a rate limit has refused.
const RETRY_NS: u64 = 1_000_000_000;

/// The spot market behind its APIs.
pub(crate) struct SpotApi {
    pub(crate) spot: SpotMarket,
    pub(crate) keys: KeyRing,
    pub(crate) faults: WebFaults,
    pub(crate) dice: FaultDice,
    /// Ambiguous answers so far.
    ambiguous: u64,
}

/// The signed part of a request.
pub(crate) struct SignedText<'a> {
    pub(crate) api_key: &'a str,
    pub(crate) payload: &'a str,
    pub(crate) signature: Option<&'a str>,
}

impl SpotApi {
    pub(crate) fn new(desk: SimDesk, faults: WebFaults) -> Self {
        let keys = KeyRing::new(desk.accounts());
        let dice = faults.dice();
        let now_ns = drifted_ns(&faults);
        let spot = SpotMarket::new(desk, &faults.suspended, now_ns);
        Self { spot, keys, faults, dice, ambiguous: 0 }
    }

    /// Returns the exchange's time.
    pub(crate) fn now_ns(&self) -> u64 {
        drifted_ns(&self.faults)
    }

    /// Counts a request of this weight, or refuses it.
    pub(crate) fn admit(&mut self, weight: u64, now_ns: u64) -> Result<(), ApiError> {
        self.spot.limits.charge(now_ns, weight)?;
        if self.dice.happens(self.faults.rate_limited) { Err(too_many_requests(now_ns, RETRY_NS)) } else { Ok(()) }
    }

    /// Returns the account whose key and signature a request has.
    pub(crate) fn authenticate(
        &self,
        signed: &SignedText<'_>,
        params: &mut RequestParams,
        now_ns: u64,
    ) -> Result<usize, ApiError> {
        let account = self.keys.account(signed.api_key)?;
        let signature = signed.signature.filter(|signature| !signature.is_empty());
        let signature = signature.ok_or_else(|| Code::Mandatory.about(&["signature"]))?;
        self.keys.verify(account, signed.payload, signature)?;
        check_time(params, now_ns)?;
        Ok(account)
    }

    /// Answers a request, which has an account if it was signed.
    pub(crate) fn run(
        &mut self,
        call: &ApiCall,
        account: Option<usize>,
        context: CallContext,
        params: &mut RequestParams,
    ) -> Result<String, ApiError> {
        self.spot.absorb(context.now_ns);
        match (call.answer, account) {
            (CallAnswer::Public(answer), _) => answer(&mut self.spot, context, params),
            (CallAnswer::Account(answer) | CallAnswer::Trade(answer), Some(account)) => {
                answer(&mut self.spot, context, account, params)
            }
            (CallAnswer::Placement(answer), Some(account)) => self.place(answer, account, context, params),
            (_, None) => Err(Code::KeyRejected.error()),
        }
    }

    /// Answers a placement. The answer to an order that was placed may leave that open.
    fn place(
        &mut self,
        answer: AccountAnswer,
        account: usize,
        context: CallContext,
        params: &mut RequestParams,
    ) -> Result<String, ApiError> {
        if !self.dice.happens(self.faults.ambiguous) {
            return answer(&mut self.spot, context, account, params);
        }
        if self.faults.ambiguous_placed {
            answer(&mut self.spot, context, account, params)?;
        }
        self.ambiguous += 1;
        Err(if self.ambiguous % 2 == 1 { Code::Timeout.error() } else { Code::UnexpectedResponse.error() })
    }
}

/// Returns the time by the exchange's clock, which may be apart from that of this host.
fn drifted_ns(faults: &WebFaults) -> u64 {
    utc_ns().saturating_add_signed(faults.clock_drift_ms.saturating_mul(MILLISECOND_NS))
}

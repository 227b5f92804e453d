//! The dead man's switch: OKX cancels all orders of the account some seconds after the last renewal.

use tickpath_clock::Calibration;
use tickpath_web_client::HttpRequest;

use crate::signed_rest::{RestCall, RestFailure, RestLimit, SignedRest};

/// Renewals of OKX's timer. Times are in ticks.
#[derive(Debug)]
pub(crate) struct DeadManSwitch {
    timeout_s: u32,
    timeout: u64,
    next: u64,
    /// Time of the last renewal that OKX has acknowledged; that of the connect before it.
    renewed: u64,
    call: Option<(RestCall, u64)>,
}

impl DeadManSwitch {
    /// Makes a switch that was not renewed yet.
    pub fn new(timeout_s: u32, calibration: &Calibration) -> Self {
        let timeout = calibration.ticks_of_ns(u64::from(timeout_s) * 1_000_000_000);
        Self { timeout_s, timeout, next: 0, renewed: 0, call: None }
    }

    /// Begins with a connection.
    pub fn begin(&mut self, now: u64) {
        (self.next, self.renewed, self.call) = (now, now, None);
    }

    /// Renews the timer every third of its time. The error is the reason why the line is lost.
    pub fn advance(&mut self, rest: &mut SignedRest, now: u64) -> Result<usize, String> {
        let Some((call, since)) = &mut self.call else {
            if now < self.next || !rest.has_room(RestLimit::Rare) {
                return Ok(0);
            }
            self.call = rest.start(RestLimit::Rare, self.request()).map(|call| (call, now));
            self.next = now + self.timeout / 3;
            return Ok(1);
        };
        let since = *since;
        let Some(answer) = rest.finish(call) else { return Ok(0) };
        self.call = None;
        let why = match answer {
            Ok(_) => {
                self.renewed = since;
                return Ok(1);
            }
            Err(RestFailure::Passing(why)) => why,
            Err(RestFailure::Refused { text, .. }) => text,
            Err(RestFailure::Absent) => "OKX has no such timer".to_owned(),
        };
        self.next = now + self.timeout / 10;
        if now.saturating_sub(self.renewed) < self.timeout {
            return Ok(1);
        }
        let timeout_s = self.timeout_s;
        Err(format!("the timer that cancels all orders after {timeout_s} s could not be renewed in that time: {why}"))
    }

    fn request(&self) -> HttpRequest {
        HttpRequest {
            method: "POST",
            path_and_query: "/api/v5/trade/cancel-all-after".to_owned(),
            headers: Vec::new(),
            body: format!(r#"{{"timeOut":"{}"}}"#, self.timeout_s),
        }
    }
}

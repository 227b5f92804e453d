//! OKX's clock at a connect. OKX refuses a login whose time is off by 30 s, and measures the expiry of an order by its
//! own clock.

use serde::Deserialize;
use tickpath_clock::{Clock, HostClock, utc_ns};
use tickpath_web_client::{HttpError, HttpResponse};

use crate::signed_rest::{RestFailure, read_rows};

/// Path of OKX's time.
pub(crate) const TIME_PATH: &str = "/api/v5/public/time";

const NS_PER_MS: i128 = 1_000_000;

#[derive(Default, Deserialize)]
#[serde(default)]
struct TimeRow {
    ts: String,
}

/// Returns OKX's clock minus this host's calibrated clock, in nanoseconds, from the answer of [`TIME_PATH`]. Fails if
/// the answer has no time, or if the operating system's clock is off by more than `max_offset_ns`.
pub(crate) fn clock_offset(
    answer: Result<HttpResponse, HttpError>,
    clock: &HostClock,
    max_offset_ns: u64,
) -> Result<i64, String> {
    let wrong = |why: String| format!("OKX's time is unknown: {why}");
    let response = answer.map_err(|error| wrong(error.0))?;
    let rows: Vec<TimeRow> = read_rows(&response).map_err(|failure| {
        wrong(match failure {
            RestFailure::Absent => "REST has no time; check its address".to_owned(),
            RestFailure::Refused { text, .. } | RestFailure::Passing(text) => text,
        })
    })?;
    let ms: Option<u64> = rows.first().and_then(|row| row.ts.parse().ok());
    let ms = ms.ok_or_else(|| wrong(format!("{TIME_PATH} has no row with a time")))?;
    // OKX cuts its time to a millisecond; the middle between request and answer is the time here.
    let venue_ns = i128::from(ms) * NS_PER_MS + NS_PER_MS / 2;
    let half_trip_ns = i128::from(clock.ns_between(response.sent, response.received)) / 2;
    let calibrated_ns = i128::from(clock.calibration().utc_ns_of(response.received)) - half_trip_ns;
    let since_ns = i128::from(clock.ns_between(response.received, clock.ticks()));
    let system_ns = i128::from(utc_ns()) - since_ns - half_trip_ns;
    let off_ns = venue_ns - system_ns;
    if off_ns.unsigned_abs() > u128::from(max_offset_ns) {
        let (seconds, direction) = (off_ns.unsigned_abs() as f64 / 1e9, if off_ns > 0 { "behind" } else { "ahead of" });
        return Err(format!("this host's clock is {seconds:.3} s {direction} OKX's; set it, for example by NTP"));
    }
    i64::try_from(venue_ns - calibrated_ns).map_err(|_| wrong(format!("{ms} ms is no time of today")))
}

//! The offset of OKX's clock, from one request for its time.

use serde::Deserialize;
use tickpath_clock::Calibration;
use tickpath_feed::{FeedEvent, FrameError};
use tickpath_web_client::{HttpError, HttpResponse};

use crate::complaint::malformed;

/// Path of the request.
pub(crate) const TIME_PATH: &str = "/api/v5/public/time";

const NS_PER_MS: i128 = 1_000_000;

#[derive(Deserialize)]
struct TimeAnswer {
    data: Vec<TimeRow>,
}

#[derive(Deserialize)]
struct TimeRow {
    ts: String,
}

/// Returns the offset as an event. OKX cuts its time to a millisecond, so that the middle of that millisecond counts,
/// and the middle between request and answer is the local time.
pub(crate) fn clock_offset(
    answer: Result<HttpResponse, HttpError>,
    calibration: &Calibration,
) -> Result<FeedEvent<'static>, FrameError> {
    let wrong = |bytes, why: String| malformed(bytes, format!("the answer to GET {TIME_PATH}: {why}"));
    let response = answer.map_err(|e| wrong(0, e.to_string()))?;
    let bytes = response.body.len();
    if response.status != 200 {
        return Err(wrong(bytes, format!("its status is {}", response.status)));
    }
    let times: TimeAnswer = serde_json::from_slice(&response.body).map_err(|e| wrong(bytes, e.to_string()))?;
    let server_ms = times.data.first().and_then(|row| row.ts.parse::<u64>().ok());
    let server_ms = server_ms.ok_or_else(|| wrong(bytes, "it has no time".to_owned()))?;
    let (sent, received) = (calibration.utc_ns_of(response.sent), calibration.utc_ns_of(response.received));
    let local_ns = (i128::from(sent) + i128::from(received)) / 2;
    let offset_ns = i128::from(server_ms) * NS_PER_MS + NS_PER_MS / 2 - local_ns;
    let offset_ns = i64::try_from(offset_ns).map_err(|_| wrong(bytes, format!("its time is {server_ms} ms")))?;
    Ok(FeedEvent::ClockOffset { offset_ns, round_trip_ns: received.saturating_sub(sent) })
}

//! The REST API: requests over HTTP, with the limits in headers of the answers.

use tickpath_venue_sim_web::{WebAnswer, WebRequest};

use crate::calls::ApiCall;
use crate::codes::{ApiError, Code};
use crate::params::RequestParams;
use crate::sign::form_payload;
use crate::spot::CallContext;
use crate::spot_api::{SignedText, SpotApi};
use crate::stamps::StampUnit;

const API_KEY_HEADER: &str = "X-MBX-APIKEY";
const TIME_UNIT_HEADER: &str = "X-MBX-TIME-UNIT";
const ORDER_COUNT_HEADERS: [&str; 2] = ["X-MBX-ORDER-COUNT-10S", "X-MBX-ORDER-COUNT-1D"];
const OK: u16 = 200;
const FORBIDDEN: u16 = 403;
/// Answer of the firewall in front of the exchange.
const FIREWALL_PAGE: &str = "<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body>\r\n\
                             <center><h1>403 Forbidden</h1></center>\r\n</body>\r\n</html>\r\n";

/// Answers an HTTP request.
pub(crate) fn answer(request: &WebRequest<'_>, api: &mut SpotApi) -> WebAnswer {
    if api.dice.happens(api.faults.html_answers) {
        return WebAnswer {
            status: FORBIDDEN,
            headers: vec![header("Content-Type", "text/html")],
            body: FIREWALL_PAGE.into(),
        };
    }
    let now_ns = api.now_ns();
    let mut counted = None;
    let mut answer = match perform(request, api, now_ns, &mut counted) {
        Ok(body) => json_answer(OK, body),
        Err(error) => refusal(&error),
    };
    let weight = api.spot.limits.used_weight(now_ns).to_string();
    answer.headers.push(header("X-MBX-USED-WEIGHT", &weight));
    answer.headers.push(header("X-MBX-USED-WEIGHT-1M", &weight));
    if let Some(account) = counted {
        let counts = api.spot.limits.order_counts(now_ns, account);
        let headers = ORDER_COUNT_HEADERS.into_iter().zip(counts);
        answer.headers.extend(headers.map(|(name, count)| header(name, &count.to_string())));
    }
    answer
}

/// Returns a refusal as an answer of HTTP.
pub(crate) fn refusal(error: &ApiError) -> WebAnswer {
    let mut answer = json_answer(error.status, error.json());
    if let Some(seconds) = error.retry_after_s {
        answer.headers.push(header("Retry-After", &seconds.to_string()));
    }
    answer
}

/// Performs a request. Notes the account whose orders it has counted.
fn perform(
    request: &WebRequest<'_>,
    api: &mut SpotApi,
    now_ns: u64,
    counted: &mut Option<usize>,
) -> Result<String, ApiError> {
    let call = ApiCall::by_path(request.method, request.path);
    let call = call.ok_or_else(|| Code::UnsupportedOperation.error())?;
    let unit = match request.header(TIME_UNIT_HEADER) {
        Some(text) => StampUnit::read(text).ok_or_else(|| Code::TimeUnit.error())?,
        None => StampUnit::default(),
    };
    let body = std::str::from_utf8(request.body);
    let body = body.map_err(|_| Code::IllegalCharacters.about(&["body", "a form"]))?;
    let mut params = RequestParams::of_form(request.query, body)?;
    api.admit(call.weight(&params), now_ns)?;
    let account = if call.is_signed() {
        let (payload, signature) = form_payload(request.query, body);
        let api_key = request.header(API_KEY_HEADER).unwrap_or_default();
        let signed = SignedText { api_key, payload: &payload, signature: signature.as_deref() };
        params.ignore(&["signature"]);
        Some(api.authenticate(&signed, &mut params, now_ns)?)
    } else {
        None
    };
    *counted = account.filter(|_| call.is_placement());
    api.run(call, account, CallContext { now_ns, unit }, &mut params)
}

fn json_answer(status: u16, body: String) -> WebAnswer {
    let headers = vec![header("Content-Type", "application/json;charset=UTF-8")];
    WebAnswer { status, headers, body: body.into_bytes() }
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

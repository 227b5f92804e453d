//! Cancels an order and places another one. The two are not one transaction: each of them may fail alone.
//!
//! ```text
//!   cancel   new order       status   code
//!   success  success            200
//!   success  failure            409   -2021
//!   failure  success            409   -2021   mode ALLOW_FAILURE
//!   failure  failure            400   -2022   mode ALLOW_FAILURE
//!   failure  not attempted      400   -2022   mode STOP_ON_FAILURE
//! ```

use crate::codes::{ApiError, Code};
use crate::json::OrderedObject;
use crate::new_order::RequestedOrder;
use crate::orders::{RequestedCancel, enter, withdraw};
use crate::params::RequestParams;
use crate::spot::{CallContext, SpotMarket};

const CANCELED_ORDER_NAMES: [&str; 2] = ["cancelOrderId", "cancelOrigClientOrderId"];
const TOO_MANY_REQUESTS: u16 = 429;

/// Answers `order.cancelReplace`.
pub(crate) fn cancel_replace(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let stops = read_choice(params, "cancelReplaceMode", ["STOP_ON_FAILURE", "ALLOW_FAILURE"])?;
    let stops = stops.ok_or_else(|| Code::Mandatory.about(&["cancelReplaceMode"]))?;
    let cancels_always =
        read_choice(params, "orderRateLimitExceededMode", ["CANCEL_ONLY", "DO_NOTHING"])?.unwrap_or(false);
    let cancel = RequestedCancel::read(spot, params, CANCELED_ORDER_NAMES, "cancelNewClientOrderId")?;
    let order = RequestedOrder::read(spot, params)?;
    params.finish()?;
    let counted = spot.limits.count_order(context.now_ns, account);
    if !cancels_always {
        counted.clone()?;
    }
    let is_limited = counted.is_err();
    let canceled = withdraw(spot, context, account, &cancel);
    let placed = match counted {
        _ if canceled.is_err() && stops => None,
        Ok(()) => Some(enter(spot, context, account, &order)),
        Err(error) => Some(Err(error)),
    };
    answer(&canceled, placed.as_ref()).map_err(|mut error| {
        if is_limited && stops {
            error.status = TOO_MANY_REQUESTS;
        }
        error
    })
}

/// Returns the answer to both requests; the new order is none if it was not attempted.
fn answer(canceled: &Result<String, ApiError>, placed: Option<&Result<String, ApiError>>) -> Result<String, ApiError> {
    let both = OrderedObject::new()
        .text("cancelResult", result_name(Some(canceled)))
        .text("newOrderResult", result_name(placed))
        .raw("cancelResponse", &response(Some(canceled)))
        .raw("newOrderResponse", &response(placed))
        .finish();
    match (canceled.is_ok(), placed.is_some_and(Result::is_ok)) {
        (true, true) => Ok(both),
        (false, false) => Err(Code::NotReplaced.error().with_data(both)),
        _ => Err(Code::ReplacedPartly.error().with_data(both)),
    }
}

/// Reads a parameter with two values; returns whether it has the first one.
fn read_choice(params: &mut RequestParams, name: &str, [first, second]: [&str; 2]) -> Result<Option<bool>, ApiError> {
    match params.optional(name)? {
        None => Ok(None),
        Some(value) if value == first => Ok(Some(true)),
        Some(value) if value == second => Ok(Some(false)),
        Some(_) => Err(Code::BadValue.about(&[name])),
    }
}

fn result_name(result: Option<&Result<String, ApiError>>) -> &'static str {
    match result {
        Some(Ok(_)) => "SUCCESS",
        Some(Err(_)) => "FAILURE",
        None => "NOT_ATTEMPTED",
    }
}

fn response(result: Option<&Result<String, ApiError>>) -> String {
    match result {
        Some(Ok(answer)) => answer.clone(),
        Some(Err(error)) => error.json(),
        None => "null".to_owned(),
    }
}

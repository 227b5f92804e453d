//! The exchange's error codes: one table of code, status and sentence. Statuses are those of HTTP, on the WebSocket API
//! too.

use crate::json::OrderedObject;

macro_rules! codes {
    ($($name:ident: $code:literal, $status:literal, $text:literal;)+) => {
        /// An error of the exchange. Each `%s` of its sentence stands for a detail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code {
            $($name,)+
        }

        impl Code {
            const fn row(self) -> (i32, u16, &'static str) {
                match self {
                    $(Self::$name => ($code, $status, $text),)+
                }
            }
        }
    };
}

codes! {
    TooMuchWeight: -1003, 429, "Too much request weight used; current limit is %s request weight per 1 MINUTE. Please use WebSocket Streams for live updates to avoid polling the API.";
    UnexpectedResponse: -1006, 500, "An unexpected response was received from the message bus. Execution status unknown.";
    Timeout: -1007, 504, "Timeout waiting for response from backend server. Send status unknown; execution status unknown.";
    PriceFilter: -1013, 400, "Filter failure: PRICE_FILTER";
    LotSize: -1013, 400, "Filter failure: LOT_SIZE";
    Notional: -1013, 400, "Filter failure: NOTIONAL";
    MarketClosed: -1013, 400, "Market is closed.";
    KindNotSupported: -1013, 400, "%s orders are not supported for this symbol.";
    SelfTradeMode: -1013, 400, "This symbol does not allow the specified self-trade prevention mode.";
    TooManyOrders: -1015, 429, "Too many new orders; current limit is %s orders per %s.";
    UnsupportedOperation: -1020, 404, "This operation is not supported.";
    OutsideWindow: -1021, 400, "Timestamp for this request is outside of the recvWindow.";
    AheadOfServer: -1021, 400, "Timestamp for this request was 1000ms ahead of the server's time.";
    Signature: -1022, 400, "Signature for this request is not valid.";
    IllegalCharacters: -1100, 400, "Illegal characters found in parameter '%s'; legal range is '%s'.";
    DuplicateParameter: -1101, 400, "Duplicate values for a parameter detected.";
    Mandatory: -1102, 400, "Mandatory parameter '%s' was not sent, was empty/null, or malformed.";
    OneOfTwo: -1102, 400, "Param '%s' or '%s' must be sent, but both were empty/null!";
    TooGreat: -1102, 400, "'%s' contains unexpected value. Cannot be greater than '%s'.";
    Unread: -1104, 400, "Not all sent parameters were read; read '%s' parameter(s) but was sent '%s'.";
    Empty: -1105, 400, "Parameter '%s' was empty.";
    NotRequired: -1106, 400, "Parameter '%s' sent when not required.";
    Overflow: -1108, 400, "Parameter '%s' overflowed.";
    TooPrecise: -1111, 400, "Parameter '%s' has too much precision.";
    TimeInForce: -1115, 400, "Invalid timeInForce.";
    OrderType: -1116, 400, "Invalid orderType.";
    Side: -1117, 400, "Invalid side.";
    Symbol: -1121, 400, "Invalid symbol.";
    BadCombination: -1128, 400, "Combination of optional parameters invalid.";
    BadValue: -1130, 400, "Data sent for parameter '%s' is not valid.";
    StrategyType: -1134, 400, "Strategy type was less than 1000000.";
    InvalidJson: -1135, 400, "Invalid JSON Request";
    CancelRestrictions: -1145, 400, "Invalid cancelRestrictions";
    TimeUnit: -1194, 400, "Invalid value for time unit; expected either MICROSECOND or MILLISECOND.";
    InsufficientBalance: -2010, 400, "Account has insufficient balance for requested action.";
    DuplicateOrder: -2010, 400, "Duplicate order sent.";
    WouldTake: -2010, 400, "Order would immediately match and take.";
    NoLiquidity: -2010, 400, "Order book liquidity is less than symbol minimum quantity.";
    BadOrder: -2010, 400, "Unsupported order combination";
    UnknownOrder: -2011, 400, "Unknown order sent.";
    CancelRestricted: -2011, 400, "Order was not canceled due to cancel restrictions.";
    NoSuchOrder: -2013, 400, "Order does not exist.";
    KeyFormat: -2014, 401, "API-key format invalid.";
    KeyRejected: -2015, 401, "Invalid API-key, IP, or permissions for action.";
    ReplacedPartly: -2021, 409, "Order cancel-replace partially failed.";
    NotReplaced: -2022, 400, "Order cancel-replace failed.";
    SubscriptionActive: -2035, 400, "User Data Stream subscription already active.";
    SubscriptionInactive: -2036, 400, "User Data Stream subscription not active.";
    QuantityIncrease: -2038, 400, "Order amend (quantity increase) is not supported.";
    NoChange: -2038, 400, "The requested action would change no state; rejecting";
    HmacLogon: -4056, 400, "HMAC_SHA256 API key is not supported.";
}

/// A refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// Status of HTTP.
    pub(crate) status: u16,
    code: i32,
    text: String,
    /// The field `data`, as JSON.
    data: Option<String>,
    /// Value of the header `Retry-After`.
    pub(crate) retry_after_s: Option<u64>,
}

impl Code {
    /// Returns the error, whose sentence has no details.
    pub(crate) fn error(self) -> ApiError {
        self.about(&[])
    }

    /// Returns the error with its details in their order.
    pub(crate) fn about(self, details: &[&str]) -> ApiError {
        let (code, status, pattern) = self.row();
        let mut text = pattern.to_owned();
        for detail in details {
            text = text.replacen("%s", detail, 1);
        }
        ApiError { status, code, text, data: None, retry_after_s: None }
    }
}

impl ApiError {
    /// Adds the field `data`, given as JSON.
    pub(crate) fn with_data(self, data: String) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Adds the time after which the request may be sent again.
    pub(crate) fn with_retry_after(self, seconds: u64) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// Returns the error as JSON.
    pub(crate) fn json(&self) -> String {
        let object = OrderedObject::new().plain("code", self.code).text("msg", &self.text);
        match &self.data {
            Some(data) => object.raw("data", data).finish(),
            None => object.finish(),
        }
    }
}

//! Codes of OKX with their texts: the one table of all that the exchange refuses.

/// A code of OKX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OkxCode {
    /// Number, as OKX writes it.
    pub(crate) number: &'static str,
    /// Number of the case within the code; empty if OKX gives none.
    pub(crate) sub_code: &'static str,
    /// Status of an HTTP answer with this code; zero for codes of WebSocket alone.
    pub(crate) status: u16,
    /// Text, in which `{}` stands for the subject.
    pub(crate) text: &'static str,
}

/// A refusal: a code with its completed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OkxRefusal {
    pub(crate) code: OkxCode,
    pub(crate) text: String,
}

impl OkxCode {
    /// Returns the refusal of a code whose text has no subject.
    pub(crate) fn refusal(self) -> OkxRefusal {
        OkxRefusal { code: self, text: self.text.to_owned() }
    }

    /// Returns the refusal of a code about this subject.
    pub(crate) fn about(self, subject: &str) -> OkxRefusal {
        OkxRefusal { code: self, text: self.text.replacen("{}", subject, 1) }
    }
}

macro_rules! codes {
    ($($name:ident = $number:literal $(/ $sub_code:literal)?, $status:literal, $text:literal;)+) => {$(
        pub(crate) const $name: OkxCode =
            OkxCode { number: $number, sub_code: concat!($($sub_code)?), status: $status, text: $text };
    )+};
}

// Requests.
codes! {
    EMPTY_BODY = "50000", 400, "Body for POST request cannot be empty.";
    BAD_JSON = "50002", 400, "JSON syntax error";
    TIMED_OUT = "50004", 400,
        "API endpoint request timeout. (does not mean that the request was successful or failed, please check the \
         request result).";
    RATE_LIMIT = "50011", 429,
        "Rate limit reached. Please refer to API documentation and throttle requests accordingly.";
    TOO_MANY_REQUESTS = "50011", 429, "Too Many Requests";
    NOT_PLACED = "50028", 200, "Unable to place the order. Please contact the customer service for details.";
    EXPIRED_REQUEST = "50036", 200,
        "The expTime can't be earlier than the current system time. Please adjust the expTime and try again.";
    ACCOUNT_RATE_LIMIT = "50061", 200, "You've reached the maximum order rate limit for this account.";
}

// Signatures of REST requests.
codes! {
    REQUEST_EXPIRED = "50102", 401, "Timestamp request expired.";
    NO_KEY = "50103", 401, "Request header \"OK-ACCESS-KEY\" cannot be empty.";
    NO_PASSPHRASE = "50104", 401, "Request header \"OK-ACCESS-PASSPHRASE\" cannot be empty.";
    WRONG_PASSPHRASE = "50105", 401, "Request header \"OK-ACCESS-PASSPHRASE\" incorrect.";
    NO_SIGN = "50106", 401, "Request header \"OK-ACCESS-SIGN\" cannot be empty.";
    NO_TIMESTAMP = "50107", 401, "Request header \"OK-ACCESS-TIMESTAMP\" cannot be empty.";
    UNKNOWN_KEY = "50111", 401, "Invalid OK-ACCESS-KEY.";
    BAD_TIMESTAMP = "50112", 401, "Invalid OK-ACCESS-TIMESTAMP.";
    WRONG_SIGN = "50113", 401, "Invalid signature.";
    WRONG_METHOD = "50115", 405, "Invalid request method.";
}

// Orders.
codes! {
    PARAMETER = "51000", 400, "Parameter {} error";
    UNKNOWN_INSTRUMENT = "51001", 200, "Instrument ID, Instrument ID code or Spread ID doesn't exist.";
    NO_ORDER_ID = "51003", 200, "Either client order ID or order ID is required.";
    INSUFFICIENT_BALANCE = "51008" / "1000", 200, "Order failed. Insufficient {} balance in account";
    INSUFFICIENT_MARGIN = "51008" / "1001", 200, "Order failed. Insufficient {} margin in account";
    DUPLICATE_CLIENT_ID = "51016", 200, "Client order ID already exists.";
    BELOW_MINIMUM = "51020", 200, "Your order should meet or exceed the minimum order amount.";
    SUSPENDED = "51022", 200, "Contract suspended.";
    TOO_MANY_ORDERS = "51111", 200, "Maximum {} orders can be placed in bulk.";
    NOT_A_LOT = "51121", 200, "Order quantity must be a multiple of the lot size.";
    NO_QUOTATION = "51142", 200,
        "There is no valid quotation in the market, and the order cannot be filled in USDT mode, please try to switch \
         to currency mode";
    NOT_A_TICK = "51150", 200, "The precision of the number of trades or the price exceeds the limit.";
    NOTHING_TO_REDUCE = "51169", 200,
        "Order failed because you don't have any positions in this direction for this contract to reduce or close.";
    NOT_CANCELED = "51400", 200, "Order cancellation failed as the order has been filled, canceled or does not exist.";
    NOTHING_TO_AMEND = "51500", 200, "You must enter a price, quantity, or TP/SL";
    AMEND_BALANCE = "51502" / "1030", 200, "Unable to edit order: insufficient balance or margin.";
    NOT_AMENDED = "51503", 200, "Your order has already been filled or canceled.";
    AMEND_POST_ONLY = "51511", 200,
        "Modification failed as the order price did not meet the requirement for Post Only.";
    UNKNOWN_ORDER = "51603", 200, "Order does not exist.";
    NO_MARGIN_TRADING = "54000", 200, "Margin trading is not supported.";
}

// WebSocket.
codes! {
    LOGIN_TIMESTAMP = "60004", 0, "Invalid timestamp";
    LOGIN_KEY = "60005", 0, "Invalid apiKey";
    LOGIN_EXPIRED = "60006", 0, "Timestamp request expired";
    LOGIN_SIGN = "60007", 0, "Invalid sign";
    LOGIN_FAILED = "60009", 0, "Login failed.";
    LOGIN_NEEDED = "60011", 0, "Please log in";
    ILLEGAL_REQUEST = "60012", 0, "Illegal request: {}";
    INVALID_ARGUMENTS = "60013", 0, "Invalid args";
    TOO_FREQUENT = "60014", 0, "Requests too frequent";
    UNKNOWN_CHANNEL = "60018", 0,
        "Wrong URL or {} doesn't exist. Please use the correct URL, channel and parameters referring to API document.";
    UNKNOWN_OPERATION = "60019", 0, "Invalid op: {}";
    LOGIN_PASSPHRASE = "60024", 0, "Wrong passphrase";
    WRONG_URL = "60028", 0,
        "The current operation is not supported by this URL. Please use the correct WebSocket URL for the operation.";
    LOGIN_REPEATED = "60031", 0, "The WebSocket endpoint does not allow multiple or repeated logins.";
    FEE_TIER = "64003", 0, "Your trading fee tier doesn't meet the requirement to access this channel";
    UPGRADE = "64008", 0, "The connection will soon be closed for a service upgrade. Please reconnect.";
}

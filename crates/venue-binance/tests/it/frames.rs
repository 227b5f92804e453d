//! Frames as the exchange writes them.

use serde_json::{Value, json};

/// Digits of the order ids in texts.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An event of an order, with the fields that differ.
#[derive(Debug, Clone)]
pub struct EventFrame {
    pub client: String,
    pub original: String,
    pub kind: &'static str,
    pub state: &'static str,
    pub venue_id: u64,
    pub quantity: &'static str,
    pub price: &'static str,
    pub last: &'static str,
    pub last_price: &'static str,
    pub cumulative: &'static str,
    pub trade_id: i64,
    pub execution_id: u64,
    pub fee: &'static str,
    pub is_maker: bool,
    pub reason: &'static str,
}

impl EventFrame {
    /// Returns the acceptance of an order with this text.
    pub fn new(client: &str, venue_id: u64) -> Self {
        Self {
            client: client.to_owned(),
            original: String::new(),
            kind: "NEW",
            state: "NEW",
            venue_id,
            quantity: "0.50000000",
            price: "60000.00000000",
            last: "0.00000000",
            last_price: "0.00000000",
            cumulative: "0.00000000",
            trade_id: -1,
            execution_id: 1,
            fee: "0",
            is_maker: false,
            reason: "NONE",
        }
    }

    /// Returns a fill of the order.
    pub fn trade(&self, trade_id: i64, last: &'static str, cumulative: &'static str, state: &'static str) -> Self {
        let (kind, last_price, fee) = ("TRADE", "59999.50000000", "0.00001234");
        let execution_id = 100 + trade_id.unsigned_abs();
        Self { kind, state, trade_id, last, last_price, cumulative, fee, execution_id, ..self.clone() }
    }

    /// Returns the cancel of the order, which has this text from then on.
    pub fn canceled(&self, text: &str, cumulative: &'static str) -> Self {
        let (client, original) = (text.to_owned(), self.client.clone());
        Self { client, original, kind: "CANCELED", state: "CANCELED", cumulative, execution_id: 900, ..self.clone() }
    }

    /// Returns the expiry of the order.
    pub fn expired(&self, cumulative: &'static str, state: &'static str) -> Self {
        Self { kind: "EXPIRED", state, cumulative, execution_id: 901, ..self.clone() }
    }

    /// Returns the frame in the spelling of the exchange.
    pub fn text(&self) -> String {
        let Self { client, original, kind, state, venue_id, quantity, price, last, last_price, .. } = self;
        let Self { cumulative, trade_id, execution_id, fee, is_maker, reason, .. } = self;
        let currency = if *fee == "0" { "null" } else { "\"BNB\"" };
        format!(
            "{{\"subscriptionId\":0,\"event\":{{\"e\":\"executionReport\",\"E\":1700000000123,\"s\":\"BTCUSDT\",\
             \"c\":\"{client}\",\"S\":\"BUY\",\"o\":\"LIMIT\",\"f\":\"GTC\",\"q\":\"{quantity}\",\"p\":\"{price}\",\
             \"P\":\"0.00000000\",\"F\":\"0.00000000\",\"g\":-1,\"C\":\"{original}\",\"x\":\"{kind}\",\
             \"X\":\"{state}\",\"r\":\"{reason}\",\"i\":{venue_id},\"l\":\"{last}\",\"z\":\"{cumulative}\",\
             \"L\":\"{last_price}\",\"n\":\"{fee}\",\"N\":{currency},\"T\":1700000000122,\"t\":{trade_id},\
             \"I\":{execution_id},\"w\":true,\"m\":{is_maker},\"M\":false,\"O\":1700000000000,\"Z\":\"0.00000000\",\
             \"Y\":\"0.00000000\",\"Q\":\"0.00000000\",\"W\":1700000000000,\"V\":\"NONE\"}}}}"
        )
    }
}

/// Returns the state of an order as answers have it.
pub fn record(client: &str, venue_id: u64, state: &str, executed: &str) -> Value {
    json!({
        "symbol": "BTCUSDT",
        "orderId": venue_id,
        "orderListId": -1,
        "clientOrderId": client,
        "price": "60000.00000000",
        "origQty": "0.50000000",
        "executedQty": executed,
        "cummulativeQuoteQty": "0.00000000",
        "status": state,
        "timeInForce": "GTC",
        "type": "LIMIT",
        "side": "BUY",
        "stopPrice": "0.00000000",
        "icebergQty": "0.00000000",
        "time": 1_700_000_000_000_u64,
        "updateTime": 1_700_000_000_000_u64,
        "isWorking": true,
        "workingTime": 1_700_000_000_000_u64,
        "origQuoteOrderQty": "0.00000000",
        "selfTradePreventionMode": "NONE",
    })
}

/// Returns the state of an order with a price that is no number.
pub fn unreadable(client: &str, venue_id: u64) -> Value {
    let mut order = record(client, venue_id, "NEW", "0");
    order["price"] = json!("x");
    order
}

/// Returns a fill as answers have it.
pub fn fill(id: u64, venue_id: u64, quantity: &str) -> Value {
    json!({
        "symbol": "BTCUSDT",
        "id": id,
        "orderId": venue_id,
        "orderListId": -1,
        "price": "59999.50000000",
        "qty": quantity,
        "quoteQty": "0.00000000",
        "commission": "0.00001234",
        "commissionAsset": "BNB",
        "time": 1_700_000_000_122_u64,
        "isBuyer": true,
        "isMaker": false,
        "isBestMatch": true,
    })
}

/// Returns the text of an order of the OMS and the account of the tests, as it is first placed.
pub fn text_of(order: u64) -> String {
    let (mut text, mut rest) = (Vec::new(), order);
    for _ in 0..11 {
        text.push(char::from(DIGITS[(rest % 62) as usize]));
        rest /= 62;
    }
    format!("tQZ{}7", text.iter().rev().collect::<String>())
}

/// Returns the order of the OMS that a text names.
pub fn order_of(text: &str) -> u64 {
    let digit = |byte: u8| DIGITS.iter().position(|digit| *digit == byte).expect("a digit") as u64;
    text.bytes().skip(3).take(11).fold(0, |order, byte| order * 62 + digit(byte))
}

/// Returns a text with another first letter: as a cancel (`c`) or a replacement (`r`) leaves it.
pub fn renamed(client: &str, letter: char) -> String {
    format!("{letter}{}", &client[1..])
}

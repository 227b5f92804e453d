//! The hot messages, read in place in exactly the spelling that the exchange sends.
//!
//! ```text
//!   {"id":N,"status":200,"result":{"symbol":S,"orderId":N,"orderListId":I,"clientOrderId":S,"transactTime":N}}
//!   {"subscriptionId":N,"event":{"e":"executionReport","E":N,"s":S,"c":S,"S":S,"o":S,"f":S,"q":D,"p":D,"P":S,"F":S,
//!    "g":I,"C":S,"x":S,"X":S,"r":S,"i":N,"l":D,"z":D,"L":D,"n":D,"N":S|null,"T":N,"t":I,"I":N,"w":B,"m":B,"M":B,
//!    "O":N,"Z":S,"Y":S,"Q":S[,"W":N],"V":S}}
//! ```
//!
//! N is a number, I one with a sign, S a text, D a decimal in quotes, B true or false. Anything else is left to the
//! complete reader, such as events with conditional fields and answers with rate limits.

use tickpath_json_scan::JsonScan;
use tickpath_market::{Currency, DECIMALS, Side};

use crate::message::{EventKind, LineFrame, OrderEvent, OrderState};
use crate::terms::OrderTerms;

/// Reads a frame; none if it is not exactly of a form above, or a number does not fit.
#[inline]
pub(crate) fn read(frame: &[u8]) -> Option<LineFrame<'_>> {
    let mut scan = FrameScan { scan: JsonScan::new(frame) };
    let read = if scan.has(b"{\"id\":") {
        scan.placed()?
    } else {
        scan.literal(b"{\"subscriptionId\":")?;
        LineFrame::Event(scan.event()?)
    };
    scan.scan.at_end().then_some(read)
}

struct FrameScan<'a> {
    scan: JsonScan<'a>,
}

impl<'a> FrameScan<'a> {
    fn placed(&mut self) -> Option<LineFrame<'a>> {
        let number = self.scan.unsigned()?;
        self.literal(b",\"status\":200,\"result\":{\"symbol\":")?;
        self.scan.text()?;
        self.literal(b",\"orderId\":")?;
        let order_id = self.scan.unsigned()?;
        self.literal(b",\"orderListId\":")?;
        self.scan.signed()?;
        self.literal(b",\"clientOrderId\":")?;
        self.scan.text()?;
        self.literal(b",\"transactTime\":")?;
        self.scan.unsigned()?;
        self.literal(b"}}")?;
        Some(LineFrame::Placed { number, order_id })
    }

    fn event(&mut self) -> Option<OrderEvent<'a>> {
        self.scan.unsigned()?;
        self.literal(b",\"event\":{\"e\":\"executionReport\",\"E\":")?;
        let event_ms = self.scan.unsigned()?;
        let symbol = self.text(b",\"s\":")?;
        let client = self.text(b",\"c\":")?;
        let terms = self.terms()?;
        self.text(b",\"P\":")?;
        self.text(b",\"F\":")?;
        self.literal(b",\"g\":")?;
        self.scan.signed()?;
        let original = self.text(b",\"C\":")?;
        let kind = EventKind::of(self.text(b",\"x\":")?);
        let state = OrderState::of(self.text(b",\"X\":")?);
        let reason = self.text(b",\"r\":")?;
        self.literal(b",\"i\":")?;
        let order_id = self.scan.unsigned()?;
        let last_quantity = self.decimal(b",\"l\":")?;
        let cumulative = self.decimal(b",\"z\":")?;
        let last_price = self.decimal(b",\"L\":")?;
        let fee = self.decimal(b",\"n\":")?;
        let fee_currency = self.currency()?;
        self.literal(b",\"T\":")?;
        let transact_ms = self.scan.unsigned()?;
        self.literal(b",\"t\":")?;
        let trade_id = u64::try_from(self.scan.signed()?).ok();
        self.literal(b",\"I\":")?;
        let execution_id = self.scan.unsigned()?;
        self.literal(b",\"w\":")?;
        self.flag()?;
        self.literal(b",\"m\":")?;
        let is_maker = self.flag()?;
        let self_trade = self.tail()?;
        Some(OrderEvent {
            event_ms,
            transact_ms,
            symbol,
            client,
            original,
            terms: terms.with_self_trade(self_trade),
            kind,
            state,
            order_id,
            execution_id,
            trade_id,
            last_price,
            last_quantity,
            cumulative,
            prevented: 0,
            fee,
            fee_currency,
            is_maker,
            reason,
        })
    }

    fn terms(&mut self) -> Option<OrderTerms> {
        let side = match self.text(b",\"S\":")? {
            b"BUY" => Side::Buy,
            b"SELL" => Side::Sell,
            _ => return None,
        };
        let words: [&[u8]; 3] = [self.text(b",\"o\":")?, self.text(b",\"f\":")?, b""];
        let quantity = self.decimal(b",\"q\":")?;
        let price = self.decimal(b",\"p\":")?;
        Some(OrderTerms { price, quantity, ..OrderTerms::of_words(side, words) })
    }

    /// Reads a currency, or null. A name that is no currency here is read as none.
    fn currency(&mut self) -> Option<Currency> {
        self.literal(b",\"N\":")?;
        if self.has(b"null") {
            return Some(Currency::default());
        }
        let name = self.scan.text()?;
        Some(std::str::from_utf8(name).ok()?.parse().unwrap_or_default())
    }

    /// Reads from the flag without a meaning to the end, and returns the mode of self-trade prevention.
    fn tail(&mut self) -> Option<&'a [u8]> {
        self.literal(b",\"M\":")?;
        self.flag()?;
        self.literal(b",\"O\":")?;
        self.scan.unsigned()?;
        for key in [b",\"Z\":", b",\"Y\":", b",\"Q\":"] {
            self.text(key)?;
        }
        if self.has(b",\"W\":") {
            self.scan.unsigned()?;
        }
        let self_trade = self.text(b",\"V\":")?;
        self.literal(b"}}")?;
        Some(self_trade)
    }

    fn text(&mut self, key: &[u8]) -> Option<&'a [u8]> {
        self.literal(key)?;
        self.scan.text()
    }

    fn decimal(&mut self, key: &[u8]) -> Option<i64> {
        self.literal(key)?;
        self.scan.quoted_decimal(DECIMALS)
    }

    fn flag(&mut self) -> Option<bool> {
        if self.has(b"true") {
            return Some(true);
        }
        self.literal(b"false")?;
        Some(false)
    }

    #[inline]
    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.scan.literal(expected)
    }

    #[inline]
    fn has(&mut self, expected: &[u8]) -> bool {
        self.scan.literal(expected).is_some()
    }
}

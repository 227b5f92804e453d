//! A row about an order, of the orders channel or of REST: its texts, and their meaning for an order of this OMS.

use std::borrow::Cow;

use serde::Deserialize;
use tickpath_market::{AccountId, Currency, ExecId, ExecType, Liquidity, OrdStatus, Price, Quantity, Side};

use crate::decimal::{read_amount, read_decimal, read_fee};
use crate::order_naming::{OrderNaming, read_request};
use crate::reasons::{CANCELED_BY_OKX, read_code};
use crate::stable_hash::stable_hash;
use crate::traded_instruments::{TradedInstrument, TradedInstruments};

const NS_PER_MS: u64 = 1_000_000;

/// Texts of a row that the line reads; OKX sends some forty more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RawOrder<'a> {
    #[serde(borrow)]
    pub inst_id: Cow<'a, str>,
    #[serde(borrow)]
    pub inst_type: Cow<'a, str>,
    #[serde(borrow)]
    pub ord_id: Cow<'a, str>,
    #[serde(borrow)]
    pub cl_ord_id: Cow<'a, str>,
    #[serde(borrow)]
    pub px: Cow<'a, str>,
    #[serde(borrow)]
    pub sz: Cow<'a, str>,
    #[serde(borrow)]
    pub ord_type: Cow<'a, str>,
    #[serde(borrow)]
    pub side: Cow<'a, str>,
    #[serde(borrow)]
    pub state: Cow<'a, str>,
    #[serde(borrow)]
    pub acc_fill_sz: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_px: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_sz: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_fee: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_fee_ccy: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_time: Cow<'a, str>,
    #[serde(borrow)]
    pub exec_type: Cow<'a, str>,
    #[serde(borrow)]
    pub trade_id: Cow<'a, str>,
    #[serde(borrow)]
    pub cancel_source: Cow<'a, str>,
    #[serde(borrow)]
    pub amend_source: Cow<'a, str>,
    #[serde(borrow)]
    pub amend_result: Cow<'a, str>,
    #[serde(borrow)]
    pub req_id: Cow<'a, str>,
    #[serde(borrow)]
    pub u_time: Cow<'a, str>,
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    #[serde(borrow)]
    pub msg: Cow<'a, str>,
}

/// State of an order at OKX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateState {
    Live,
    /// Filled in part, or in a state that this line does not know and that ends nothing.
    PartlyFilled,
    Filled,
    Canceled,
}

/// An order of this OMS as OKX has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderUpdate {
    pub order: u64,
    pub account: AccountId,
    /// Index of the instrument.
    pub instrument: usize,
    /// OKX's own id.
    pub venue_id: u64,
    /// OKX's type of the instrument, as its requests name it; empty if unknown.
    pub kind: &'static str,
    pub side: Side,
    pub is_market: bool,
    /// The order never rests.
    pub is_immediate: bool,
    pub price: Price,
    pub total: Quantity,
    pub cumulative: Quantity,
    pub state: UpdateState,
    /// Cause of a cancel by OKX's table; 1 is the user.
    pub cancel_source: Option<u16>,
    pub amendment: Option<Amendment>,
    /// The fill that this row reports. Rows of REST report none.
    pub fill: Option<OrderFill>,
    pub updated_ns: u64,
    /// OKX's code and text of a failure.
    pub code: u32,
    pub message: String,
}

/// Result of an amendment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amendment {
    /// Request of this OMS; zero for an amendment by OKX or by another program.
    pub request: u64,
    /// Distinguishes the amendments of an order.
    pub key: u64,
    pub is_applied: bool,
    /// A user has asked for it, by this OMS or otherwise.
    pub is_of_user: bool,
}

/// A fill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OrderFill {
    pub execution: ExecId,
    pub price: Price,
    pub quantity: Quantity,
    /// Paid, in units of 10⁻¹⁶; negative for a rebate.
    pub fee: i128,
    pub fee_currency: Currency,
    pub liquidity: Liquidity,
    pub at_ns: u64,
}

/// Texts of a fill, which have other names in a row of the orders channel and in one of the list of fills.
pub(crate) struct FillTexts<'a> {
    pub trade_id: &'a str,
    pub price: &'a str,
    pub size: &'a str,
    pub fee: &'a str,
    pub fee_currency: &'a str,
    pub exec_type: &'a str,
    pub time: &'a str,
}

impl OrderUpdate {
    /// Reads a row; none if its order is not one of this OMS in one of these instruments.
    pub fn read(
        raw: &RawOrder<'_>,
        instruments: &TradedInstruments,
        naming: OrderNaming,
    ) -> Result<Option<Self>, String> {
        let Some((account, order)) = naming.read_order(&raw.cl_ord_id) else { return Ok(None) };
        let Some(index) = instruments.find_name(&raw.inst_id) else { return Ok(None) };
        let instrument = instruments.get(index);
        let quantity = |name: &str, text: &str| read_amount(name, text).and_then(|size| instrument.quantity_of(size));
        Ok(Some(Self {
            order,
            account,
            instrument: index,
            venue_id: raw.ord_id.parse().unwrap_or(0),
            kind: kind_of(&raw.inst_type),
            side: read_side(&raw.side)?,
            is_market: raw.ord_type == "market",
            is_immediate: matches!(&*raw.ord_type, "market" | "ioc" | "fok" | "optimal_limit_ioc" | "op_fok"),
            price: Price(read_decimal("px", &raw.px)?),
            total: quantity("sz", &raw.sz)?,
            cumulative: quantity("accFillSz", &raw.acc_fill_sz)?,
            state: read_state(&raw.state),
            cancel_source: raw.cancel_source.parse().ok(),
            amendment: Amendment::read(raw),
            fill: raw.fill_texts().read(instrument)?,
            updated_ns: read_ms(&raw.u_time),
            code: read_code(&raw.code),
            message: raw.msg.clone().into_owned(),
        }))
    }

    /// Returns the open quantity.
    pub fn leaves(&self) -> Quantity {
        match self.state {
            UpdateState::Live | UpdateState::PartlyFilled => Quantity((self.total.0 - self.cumulative.0).max(0)),
            UpdateState::Filled | UpdateState::Canceled => Quantity::ZERO,
        }
    }

    /// Returns the status of the order.
    pub fn status(&self) -> OrdStatus {
        match (self.state, self.end()) {
            (_, Some(end)) => end.status,
            (UpdateState::Filled, None) => OrdStatus::Filled,
            _ if self.cumulative.0 == 0 => OrdStatus::New,
            _ => OrdStatus::PartiallyFilled,
        }
    }

    /// Returns the end of an order that is canceled. The rest of an order that never rests expires, unless its user
    /// cancels it.
    pub fn end(&self) -> Option<OrderEnd> {
        const BY_USER: u16 = 1;
        // Rests of FOK and IOC.
        const AS_ORDERED: [u16; 2] = [13, 14];
        if self.state != UpdateState::Canceled {
            return None;
        }
        let is_by_user = self.cancel_source == Some(BY_USER);
        let reason = match self.cancel_source {
            Some(source) if !is_by_user && !AS_ORDERED.contains(&source) => CANCELED_BY_OKX.saturating_add(source),
            _ => 0,
        };
        let (exec_type, status) = match self.is_immediate && !is_by_user {
            true => (ExecType::Expired, OrdStatus::Expired),
            false => (ExecType::Canceled, OrdStatus::Canceled),
        };
        Some(OrderEnd { exec_type, status, reason, is_by_user })
    }
}

/// End of an order with an open rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderEnd {
    pub exec_type: ExecType,
    pub status: OrdStatus,
    pub reason: u16,
    pub is_by_user: bool,
}

impl Amendment {
    /// Reads the amendment of a row. OKX repeats the last one in later rows of the order.
    fn read(raw: &RawOrder<'_>) -> Option<Self> {
        let (is_applied, is_by_okx) = match (&*raw.amend_result, &*raw.amend_source) {
            ("0" | "2", _) => (true, false),
            ("-1", _) => (false, false),
            // Less than was ordered, or another price, by OKX's own decision.
            ("", "2" | "4" | "5" | "6") => (true, true),
            _ => return None,
        };
        let request = read_request(&raw.req_id).filter(|_| !is_by_okx).unwrap_or(0);
        let key = match request {
            0 if raw.req_id.is_empty() || is_by_okx => stable_hash(&[&*raw.amend_source, &*raw.sz, &*raw.px]),
            0 => stable_hash(&[&*raw.req_id]),
            request => request,
        };
        Some(Self { request, key, is_applied, is_of_user: !is_by_okx })
    }
}

impl RawOrder<'_> {
    fn fill_texts(&self) -> FillTexts<'_> {
        FillTexts {
            trade_id: &self.trade_id,
            price: &self.fill_px,
            size: &self.fill_sz,
            fee: &self.fill_fee,
            fee_currency: &self.fill_fee_ccy,
            exec_type: &self.exec_type,
            time: &self.fill_time,
        }
    }
}

impl FillTexts<'_> {
    /// Reads a fill; none without a trade id, or with a size of zero, by which OKX ends some market orders.
    pub fn read(&self, instrument: &TradedInstrument) -> Result<Option<OrderFill>, String> {
        let quantity = instrument.quantity_of(read_amount("fillSz", self.size)?)?;
        if matches!(self.trade_id, "" | "0") || quantity == Quantity::ZERO {
            return Ok(None);
        }
        Ok(Some(OrderFill {
            execution: instrument.execution_id(self.trade_id),
            price: Price(read_decimal("fillPx", self.price)?),
            quantity,
            // OKX counts what it takes as negative.
            fee: read_fee(self.fee).map_or(0, |fee| -fee),
            fee_currency: self.fee_currency.parse().unwrap_or_default(),
            liquidity: match self.exec_type {
                "M" => Liquidity::Maker,
                "T" => Liquidity::Taker,
                _ => Liquidity::Unknown,
            },
            at_ns: read_ms(self.time),
        }))
    }
}

/// Reads a side.
pub(crate) fn read_side(text: &str) -> Result<Side, String> {
    match text {
        "buy" => Ok(Side::Buy),
        "sell" => Ok(Side::Sell),
        _ => Err("an order is neither bought nor sold".to_owned()),
    }
}

/// Reads a time in milliseconds as nanoseconds; zero if it is no time.
pub(crate) fn read_ms(text: &str) -> u64 {
    text.parse::<u64>().ok().and_then(|ms| ms.checked_mul(NS_PER_MS)).unwrap_or(0)
}

fn read_state(text: &str) -> UpdateState {
    match text {
        "live" => UpdateState::Live,
        "filled" => UpdateState::Filled,
        "canceled" | "mmp_canceled" => UpdateState::Canceled,
        _ => UpdateState::PartlyFilled,
    }
}

fn kind_of(text: &str) -> &'static str {
    const KINDS: [&str; 5] = ["SPOT", "MARGIN", "SWAP", "FUTURES", "OPTION"];
    KINDS.into_iter().find(|kind| *kind == text).unwrap_or("")
}

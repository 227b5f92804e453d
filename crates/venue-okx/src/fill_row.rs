//! A row of REST's list of fills.

use std::borrow::Cow;

use serde::Deserialize;
use tickpath_market::{AccountId, Side};

use crate::order_naming::OrderNaming;
use crate::order_update::{FillTexts, OrderFill, read_side};
use crate::traded_instruments::TradedInstruments;

/// Texts of a row that the line reads.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RawFill<'a> {
    #[serde(borrow)]
    pub inst_id: Cow<'a, str>,
    #[serde(borrow)]
    pub ord_id: Cow<'a, str>,
    #[serde(borrow)]
    pub cl_ord_id: Cow<'a, str>,
    #[serde(borrow)]
    pub bill_id: Cow<'a, str>,
    #[serde(borrow)]
    pub trade_id: Cow<'a, str>,
    #[serde(borrow)]
    pub side: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_px: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_sz: Cow<'a, str>,
    #[serde(borrow)]
    pub fill_time: Cow<'a, str>,
    #[serde(borrow)]
    pub exec_type: Cow<'a, str>,
    #[serde(borrow)]
    pub fee: Cow<'a, str>,
    #[serde(borrow)]
    pub fee_ccy: Cow<'a, str>,
}

/// A fill of an order of this OMS.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FillRow {
    pub order: u64,
    pub account: AccountId,
    /// Index of the instrument.
    pub instrument: usize,
    /// OKX's own id of the order.
    pub venue_id: u64,
    pub side: Side,
    pub fill: OrderFill,
}

impl FillRow {
    /// Reads a row; none if its order is not one of this OMS in one of these instruments.
    pub fn read(
        raw: &RawFill<'_>,
        instruments: &TradedInstruments,
        naming: OrderNaming,
    ) -> Result<Option<Self>, String> {
        let Some((account, order)) = naming.read_order(&raw.cl_ord_id) else { return Ok(None) };
        let Some(index) = instruments.find_name(&raw.inst_id) else { return Ok(None) };
        let texts = FillTexts {
            trade_id: &raw.trade_id,
            price: &raw.fill_px,
            size: &raw.fill_sz,
            fee: &raw.fee,
            fee_currency: &raw.fee_ccy,
            exec_type: &raw.exec_type,
            time: &raw.fill_time,
        };
        let Some(fill) = texts.read(instruments.get(index))? else { return Ok(None) };
        let (side, venue_id) = (read_side(&raw.side)?, raw.ord_id.parse().unwrap_or(0));
        Ok(Some(Self { order, account, instrument: index, venue_id, side, fill }))
    }
}

/// Brings fills into the order of their times.
pub(crate) fn sort_by_time(fills: &mut [FillRow]) {
    fills.sort_by_key(|row| (row.fill.at_ns, row.fill.execution));
}

//! The hot reader: takes a push of the orders channel with one row, in place and without an allocation.
//!
//! ```text
//!   {"arg":{"channel":"orders","instType":"ANY","uid":"614488474791936"},"data":[{"accFillSz":"0.001", … ,
//!       "attachAlgoOrds":[], … ,"linkedAlgoOrd":{"algoId":""}, … ,"uTime":"1654084353264"}]}
//! ```
//!
//! OKX adds keys now and then, so that the keys of a row may come in any order. White space, escapes and nested values
//! are left to the complete reader.

use std::borrow::Cow;

use tickpath_json_scan::JsonScan;

use crate::order_update::RawOrder;

/// Reads a push of one row. None for every frame of another form.
pub(crate) fn scan_push(frame: &[u8]) -> Option<RawOrder<'_>> {
    let scan = &mut JsonScan::new(frame);
    scan.literal(b"{\"arg\":{\"channel\":\"orders\"")?;
    while scan.literal(b",").is_some() {
        scan_key(scan)?;
        scan.text()?;
    }
    scan.literal(b"},\"data\":[{")?;
    let mut row = RawOrder::default();
    loop {
        let key = scan_key(scan)?;
        match field_of(&mut row, key) {
            Some(field) => *field = Cow::Borrowed(std::str::from_utf8(scan.text()?).ok()?),
            None => skip_value(scan)?,
        }
        if scan.literal(b",").is_none() {
            break;
        }
    }
    scan.literal(b"}]}")?;
    scan.at_end().then_some(row)
}

#[inline]
fn scan_key<'a>(scan: &mut JsonScan<'a>) -> Option<&'a [u8]> {
    let key = scan.text()?;
    scan.literal(b":")?;
    Some(key)
}

/// Passes over a text, a number, an empty list, or an object of texts.
fn skip_value(scan: &mut JsonScan<'_>) -> Option<()> {
    match scan.peek()? {
        b'"' => scan.text().map(drop),
        b'[' => scan.literal(b"[]"),
        b'{' => {
            scan.literal(b"{")?;
            if scan.literal(b"}").is_some() {
                return Some(());
            }
            loop {
                scan_key(scan)?;
                scan.text()?;
                if scan.literal(b",").is_none() {
                    break;
                }
            }
            scan.literal(b"}")
        }
        _ => scan.signed().map(drop),
    }
}

/// Returns the field of a row with this key, if the line reads it.
fn field_of<'a, 'b>(row: &'b mut RawOrder<'a>, key: &[u8]) -> Option<&'b mut Cow<'a, str>> {
    Some(match key {
        b"instId" => &mut row.inst_id,
        b"instType" => &mut row.inst_type,
        b"ordId" => &mut row.ord_id,
        b"clOrdId" => &mut row.cl_ord_id,
        b"px" => &mut row.px,
        b"sz" => &mut row.sz,
        b"ordType" => &mut row.ord_type,
        b"side" => &mut row.side,
        b"state" => &mut row.state,
        b"accFillSz" => &mut row.acc_fill_sz,
        b"fillPx" => &mut row.fill_px,
        b"fillSz" => &mut row.fill_sz,
        b"fillFee" => &mut row.fill_fee,
        b"fillFeeCcy" => &mut row.fill_fee_ccy,
        b"fillTime" => &mut row.fill_time,
        b"execType" => &mut row.exec_type,
        b"tradeId" => &mut row.trade_id,
        b"cancelSource" => &mut row.cancel_source,
        b"amendSource" => &mut row.amend_source,
        b"amendResult" => &mut row.amend_result,
        b"reqId" => &mut row.req_id,
        b"uTime" => &mut row.u_time,
        b"code" => &mut row.code,
        b"msg" => &mut row.msg,
        _ => return None,
    })
}

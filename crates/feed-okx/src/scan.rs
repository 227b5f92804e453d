//! The hot reader: takes push messages in exactly the spelling that OKX sends, in place and without an allocation.
//!
//! ```text
//!   {"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"data":[{"asks":[["8476.98","415","0","13"]],
//!       "bids":[["8476.97","256","0","12"]],"ts":"1597026383085","seqId":123456}]}
//!   {"arg":{"channel":"trades","instId":"BTC-USDT"},"data":[{"instId":"BTC-USDT","tradeId":"130639474","px":"42219.9",
//!       "sz":"0.12060306","side":"buy","ts":"1630048897897","count":"3","source":"0","seqId":1234}]}
//!   {"arg":{"channel":"books","instId":"BTC-USDT"},"action":"update","data":[{"asks":[["8476.98","415","0","13"]],
//!       "bids":[],"ts":"1597026383085","checksum":0,"seqId":123457,"prevSeqId":123456}]}
//! ```
//!
//! The pages of OKX have `prevSeqId` before `seqId`, its servers after it: both are taken. Any other frame is left to
//! the complete reader.

use tickpath_feed::{FeedInstrument, LevelChange};
use tickpath_json_scan::JsonScan;
use tickpath_market::{Price, Quantity, Side, TopOfBook, Trade};

use crate::batch::{BookHead, MessageBatch};
use crate::channels::{BOOKS, FAST_BOOKS, QUOTES, TRADES};
use crate::instrument_table::InstrumentTable;
use crate::push::{NS_PER_MS, previous_sequence};

/// Reads a push message into the batch. Returns none for every frame of another form, with the batch in any state.
pub(crate) fn scan_push(frame: &[u8], table: &mut InstrumentTable, batch: &mut MessageBatch) -> Option<()> {
    let scan = &mut JsonScan::new(frame);
    scan.literal(b"{\"arg\":{\"channel\":")?;
    let channel = scan.text()?;
    scan.literal(b",\"instId\":")?;
    let instrument = table.find(scan.text()?)?;
    scan.literal(b"},")?;
    if channel == QUOTES.as_bytes() {
        scan_quote(scan, instrument, batch)?;
    } else if channel == TRADES.as_bytes() {
        scan_trades(scan, instrument, batch)?;
    } else if channel == BOOKS.as_bytes() || channel == FAST_BOOKS.as_bytes() {
        scan_book(scan, instrument, batch)?;
    } else {
        return None;
    }
    scan.literal(b"]}")?;
    scan.at_end().then_some(())
}

fn scan_quote(scan: &mut JsonScan<'_>, instrument: &FeedInstrument, batch: &mut MessageBatch) -> Option<()> {
    scan.literal(b"\"data\":[{\"asks\":[")?;
    let (ask, ask_quantity) = scan_best(scan, instrument)?;
    scan.literal(b"],\"bids\":[")?;
    let (bid, bid_quantity) = scan_best(scan, instrument)?;
    scan.literal(b"],\"ts\":")?;
    let event_ns = scan_event_ns(scan)?;
    scan.literal(b",\"seqId\":")?;
    let sequence = scan.unsigned()?;
    scan.literal(b"}")?;
    let symbol = instrument.symbol;
    batch.add_quote(sequence, TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, wire_age_ns: 0 });
    Some(())
}

fn scan_trades(scan: &mut JsonScan<'_>, instrument: &FeedInstrument, batch: &mut MessageBatch) -> Option<()> {
    scan.literal(b"\"data\":[")?;
    loop {
        batch.add_trade(scan_trade(scan, instrument)?);
        if scan.literal(b",").is_none() {
            return Some(());
        }
    }
}

fn scan_trade(scan: &mut JsonScan<'_>, instrument: &FeedInstrument) -> Option<Trade> {
    scan.literal(b"{\"instId\":")?;
    if scan.text()? != instrument.name.as_bytes() {
        return None;
    }
    scan.literal(b",\"tradeId\":")?;
    let trade_id = scan.quoted_unsigned()?;
    scan.literal(b",\"px\":")?;
    let price = Price(scan.quoted_decimal(instrument.price_decimals)?);
    scan.literal(b",\"sz\":")?;
    let quantity = scan_quantity(scan, instrument)?;
    scan.literal(b",\"side\":")?;
    let aggressor = match scan.text()? {
        b"buy" => Side::Buy.code(),
        b"sell" => Side::Sell.code(),
        _ => return None,
    };
    scan.literal(b",\"ts\":")?;
    let event_ns = scan_event_ns(scan)?;
    scan.literal(b",\"count\":")?;
    scan.quoted_unsigned()?;
    // Recordings from before 2025 have neither of these two.
    if scan.literal(b",\"source\":").is_some() {
        scan.quoted_unsigned()?;
    }
    if scan.literal(b",\"seqId\":").is_some() {
        scan.unsigned()?;
    }
    scan.literal(b"}")?;
    Some(Trade { price, quantity, trade_id, event_ns, symbol: instrument.symbol, aggressor, reserved: [0; 3] })
}

fn scan_book(scan: &mut JsonScan<'_>, instrument: &FeedInstrument, batch: &mut MessageBatch) -> Option<()> {
    scan.literal(b"\"action\":")?;
    let is_snapshot = match scan.text()? {
        b"snapshot" => true,
        b"update" => false,
        _ => return None,
    };
    scan.literal(b",\"data\":[{\"asks\":[")?;
    scan_levels(scan, instrument, Side::Sell, batch)?;
    scan.literal(b"],\"bids\":[")?;
    scan_levels(scan, instrument, Side::Buy, batch)?;
    scan.literal(b"],\"ts\":")?;
    let event_ns = scan_event_ns(scan)?;
    scan.literal(b",\"checksum\":")?;
    scan.signed()?;
    let (previous, sequence) = scan_sequences(scan)?;
    scan.literal(b"}")?;
    let previous = previous_sequence(is_snapshot, previous)?;
    let symbol = instrument.symbol;
    batch.add_book(BookHead { symbol, is_snapshot, may_overlap: false, previous, sequence, event_ns });
    Some(())
}

/// Reads the two sequence numbers of a book: the one that it follows, and its own.
fn scan_sequences(scan: &mut JsonScan<'_>) -> Option<(Option<i64>, u64)> {
    if scan.literal(b",\"seqId\":").is_some() {
        let sequence = scan.unsigned()?;
        // Some snapshots have none.
        let previous = if scan.literal(b",\"prevSeqId\":").is_some() { Some(scan.signed()?) } else { None };
        return Some((previous, sequence));
    }
    scan.literal(b",\"prevSeqId\":")?;
    let previous = scan.signed()?;
    scan.literal(b",\"seqId\":")?;
    Some((Some(previous), scan.unsigned()?))
}

fn scan_levels(
    scan: &mut JsonScan<'_>,
    instrument: &FeedInstrument,
    side: Side,
    batch: &mut MessageBatch,
) -> Option<()> {
    if scan.peek() == Some(b']') {
        return Some(());
    }
    loop {
        let (price, quantity) = scan_level(scan, instrument)?;
        batch.add_level(LevelChange { side, price, quantity });
        if scan.literal(b",").is_none() {
            return Some(());
        }
    }
}

/// Reads the only level of a side, which is missing while the side has no orders.
#[inline]
fn scan_best(scan: &mut JsonScan<'_>, instrument: &FeedInstrument) -> Option<(Price, Quantity)> {
    if scan.peek() == Some(b']') {
        return Some((Price::ZERO, Quantity::ZERO));
    }
    scan_level(scan, instrument)
}

#[inline]
fn scan_level(scan: &mut JsonScan<'_>, instrument: &FeedInstrument) -> Option<(Price, Quantity)> {
    scan.literal(b"[")?;
    let price = Price(scan.quoted_decimal(instrument.price_decimals)?);
    scan.literal(b",")?;
    let quantity = scan_quantity(scan, instrument)?;
    // A field that OKX has abandoned, and the number of orders.
    scan.literal(b",\"0\",")?;
    scan.quoted_unsigned()?;
    scan.literal(b"]")?;
    Some((price, quantity))
}

/// Reads a quantity. The complete reader has the error of a negative one.
#[inline]
fn scan_quantity(scan: &mut JsonScan<'_>, instrument: &FeedInstrument) -> Option<Quantity> {
    scan.quoted_decimal(instrument.quantity_decimals).filter(|units| *units >= 0).map(Quantity)
}

#[inline]
fn scan_event_ns(scan: &mut JsonScan<'_>) -> Option<u64> {
    scan.quoted_unsigned()?.checked_mul(NS_PER_MS)
}

//! The order book of one instrument, from the messages of its feed.

use tickpath_market::{BookChange, DepthLevel, Invalidity, OrderBook, Side, SymbolId};

use crate::argument::{check_pointer, put};
use crate::config::find_value;
use crate::handle::{Handle, close, create, handle_of, handle_type};
use crate::request::tp_side;
use crate::status::tp_status;
use crate::tick::{tp_book_level, tp_feed_status, tp_top_of_book};

/// State of an order book: valid, or the reason why it must not be used. A later version may add reasons; treat unknown
/// reasons as invalid.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tp_book_validity {
    /// The book may be used.
    TP_BOOK_VALID = 0,
    /// No snapshot has been applied.
    TP_BOOK_NO_SNAPSHOT = 1,
    /// The last message of the exchange is applied in part; read the book after its last level.
    TP_BOOK_INCOMPLETE = 2,
    /// Updates are missing, as the feed reports; wait until the feed resynchronizes.
    TP_BOOK_GAP = 3,
    /// The last connection to the exchange that is known to be up has ended; wait for the snapshot of the next one.
    TP_BOOK_DISCONNECTED = 4,
    /// Messages of the feed were lost on the way here; wait for the next snapshot.
    TP_BOOK_LOST_MESSAGES = 5,
    /// A message has a code that this library does not know; use the version of the feed.
    TP_BOOK_UNKNOWN_CODE = 6,
    /// A side has more than 100,000 levels; subscribe to fewer levels at the feed.
    TP_BOOK_TOO_MANY_LEVELS = 7,
    /// The best bid is not below the best offer; wait for the next update.
    TP_BOOK_CROSSED = 8,
}

/// Level of an order book.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tp_depth_level {
    /// Price of the level, in 10^-8.
    pub price: i64,
    /// Quantity at the price, in 10^-8.
    pub quantity: i64,
}

/// Order book of one instrument.
pub struct tp_book(Handle<OrderBook>);

handle_type!(tp_book holds OrderBook);

/// Creates the order book of an instrument, and writes the handle to `out`, or null on an error. The book is invalid
/// until the end of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_new(symbol: u32, out: *mut *mut tp_book) -> tp_status {
    // SAFETY: `out` is null or a valid place for a handle, as the header requires.
    unsafe { create(out, || Ok(tp_book(Handle::new(OrderBook::new(SymbolId(symbol)))))) }
}

/// Applies a level; levels of other instruments change nothing. Writes to `is_complete`, which may be null, whether the
/// level completes a message of the exchange, so that the book can be read if it is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_apply(
    book: *mut tp_book,
    level: *const tp_book_level,
    is_complete: *mut bool,
) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(book) }, |book| {
        check_pointer("level", level)?;
        // SAFETY: not null, and valid for a level, as the header requires; a message's bytes may be unaligned.
        let level = unsafe { level.read_unaligned() };
        let change = book.apply(&level.message());
        // SAFETY: null or a valid place for a flag, as the header requires.
        unsafe { put(is_complete, change == BookChange::Complete) };
        Ok(())
    })
}

/// Applies an event of the feed, if it concerns this instrument.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_status(book: *mut tp_book, status: *const tp_feed_status) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(book) }, |book| {
        check_pointer("status", status)?;
        // SAFETY: not null, and valid for an event, as the header requires; a message's bytes may be unaligned.
        let status = unsafe { status.read_unaligned() };
        book.apply_status(&status.message());
        Ok(())
    })
}

/// Notes that messages of the feed were lost, as a TP_GAP of its topic reports: call it for each book of the subscriber,
/// because a gap names no instrument. The book is invalid until the next snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_lost_messages(book: *mut tp_book) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(book) }, |book| {
        book.lost_messages();
        Ok(())
    })
}

/// Writes to `is_valid` whether the book may be used, and to `reason`, which may be null, a tp_book_validity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_is_valid(book: *mut tp_book, is_valid: *mut bool, reason: *mut u32) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(book) }, |book| {
        check_pointer("is_valid", is_valid)?;
        let validity = validity_of(book);
        // SAFETY: not null, and a valid place for a flag, as the header requires.
        unsafe { is_valid.write(validity == tp_book_validity::TP_BOOK_VALID) };
        // SAFETY: null or a valid place for a number, as the header requires.
        unsafe { put(reason, validity as u32) };
        Ok(())
    })
}

/// Writes the best bid and offer to `best`, with the exchange's time of the last message. Price and quantity are 0 on a
/// side without levels, and on both sides while the book is not valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_best(book: *mut tp_book, best: *mut tp_top_of_book) -> tp_status {
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(book) }, |book| {
        check_pointer("best", best)?;
        let (bid, ask) = if book.is_valid() { (book.bids().next(), book.asks().next()) } else { (None, None) };
        let [bid, ask] = [bid, ask].map(|level| level.map_or((0, 0), |level| (level.price.0, level.quantity.0)));
        let found = tp_top_of_book {
            bid: bid.0,
            bid_quantity: bid.1,
            ask: ask.0,
            ask_quantity: ask.1,
            event_ns: book.event_ns(),
            symbol: book.symbol().0,
            wire_age_ns: 0,
        };
        // SAFETY: not null, and a valid place for the struct, as the header requires.
        unsafe { best.write(found) };
        Ok(())
    })
}

/// Writes up to `max` levels of a side, a tp_side, best first, to the array `levels`, and their number to `count`, on
/// every error 0. `levels` may be null if `max` is 0. Check tp_book_is_valid first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_levels(
    book: *mut tp_book,
    side: u32,
    levels: *mut tp_depth_level,
    max: usize,
    count: *mut usize,
) -> tp_status {
    const SIDES: [(u32, Side); 2] = [(tp_side::TP_BUY as u32, Side::Buy), (tp_side::TP_SELL as u32, Side::Sell)];
    // SAFETY: null or a valid place for a number, as the header requires.
    unsafe { put(count, 0) };
    // SAFETY: null or an open handle, as the header requires.
    Handle::with(unsafe { handle_of(book) }, |book| {
        check_pointer("count", count)?;
        if max > 0 {
            check_pointer("levels", levels)?;
        }
        // SAFETY: `levels` has room for `max` levels, as the header requires.
        let write = |index: usize, level: DepthLevel| unsafe {
            levels.add(index).write(tp_depth_level { price: level.price.0, quantity: level.quantity.0 });
        };
        let side = find_value("tp_side", side, &SIDES)?;
        match side {
            Side::Buy => book.bids().take(max).enumerate().for_each(|(index, level)| write(index, level)),
            Side::Sell => book.asks().take(max).enumerate().for_each(|(index, level)| write(index, level)),
        }
        // SAFETY: not null, and a valid place for a number, as the header requires.
        unsafe { count.write(book.depth(side).min(max)) };
        Ok(())
    })
}

/// Frees an order book; does nothing for a null pointer. It is a close function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_book_free(book: *mut tp_book) -> tp_status {
    // SAFETY: null or an open handle that is never used again, as the header requires.
    unsafe { close(book) }
}

fn validity_of(book: &OrderBook) -> tp_book_validity {
    match book.invalidity() {
        None => tp_book_validity::TP_BOOK_VALID,
        Some(Invalidity::NoSnapshot) => tp_book_validity::TP_BOOK_NO_SNAPSHOT,
        Some(Invalidity::Incomplete) => tp_book_validity::TP_BOOK_INCOMPLETE,
        Some(Invalidity::Gap { .. }) => tp_book_validity::TP_BOOK_GAP,
        Some(Invalidity::Disconnected) => tp_book_validity::TP_BOOK_DISCONNECTED,
        Some(Invalidity::LostMessages) => tp_book_validity::TP_BOOK_LOST_MESSAGES,
        Some(Invalidity::UnknownCode) => tp_book_validity::TP_BOOK_UNKNOWN_CODE,
        Some(Invalidity::TooManyLevels) => tp_book_validity::TP_BOOK_TOO_MANY_LEVELS,
        Some(Invalidity::Crossed) => tp_book_validity::TP_BOOK_CROSSED,
    }
}

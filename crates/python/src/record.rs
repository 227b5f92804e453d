//! Records: messages of one kind back to back, as arrays of numpy hold them.

use pyo3::prelude::*;
use tickpath_market::{BookLevel, FeedStatus, Kind, TopOfBook, Trade};

/// Size of a trade.
pub const TRADE_BYTES: usize = size_of::<Trade>();

/// Size of a record of any other kind.
pub const RECORD_BYTES: usize = size_of::<TopOfBook>();

const _: () = assert!(RECORD_BYTES == size_of::<BookLevel>() && RECORD_BYTES == size_of::<FeedStatus>());
const _: () = assert!(TRADE_BYTES != RECORD_BYTES);

/// Returns the size of a record of this kind; None if messages of this kind are no records.
pub fn record_bytes(kind: u8) -> Option<usize> {
    match Kind::from_code(kind)? {
        Kind::Trade => Some(TRADE_BYTES),
        Kind::TopOfBook | Kind::BookLevel | Kind::FeedStatus => Some(RECORD_BYTES),
        _ => None,
    }
}

/// Returns the kind of the records in a view. Records of equal size differ in the names of their fields; without such
/// names they are tops of book.
pub fn kind_of_records(view: &Bound<'_, PyAny>) -> PyResult<Option<u8>> {
    let kind = match view.getattr("itemsize")?.extract::<usize>()? {
        TRADE_BYTES => Kind::Trade,
        RECORD_BYTES => {
            let format: String = view.getattr("format")?.extract()?;
            if format.contains(":condition:") {
                Kind::FeedStatus
            } else if format.contains(":sequence:") {
                Kind::BookLevel
            } else {
                Kind::TopOfBook
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(kind.code()))
}

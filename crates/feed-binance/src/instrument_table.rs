//! Instruments by the names in the exchange's messages, and numbers in the units of an instrument.

use tickpath_feed::{FeedInstrument, FrameError};
use tickpath_market::{Price, Quantity, parse_decimal};

use crate::message::printable;

/// The instruments of a parser.
pub(crate) struct InstrumentTable {
    sorted: Vec<FeedInstrument>,
}

impl InstrumentTable {
    pub(crate) fn new(instruments: &[FeedInstrument]) -> Self {
        let mut sorted = instruments.to_vec();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        Self { sorted }
    }

    /// Returns the instrument of this name.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<&FeedInstrument> {
        let found = self.sorted.binary_search_by(|instrument| instrument.name.as_bytes().cmp(name)).ok()?;
        Some(&self.sorted[found])
    }

    /// Returns the instrument of a stream, whose name begins with the symbol in lower case and `@`.
    pub(crate) fn find_by_stream(&self, stream: &[u8]) -> Option<&FeedInstrument> {
        let symbol = stream.split(|byte| *byte == b'@').next()?;
        self.sorted.iter().find(|instrument| instrument.name.as_bytes().eq_ignore_ascii_case(symbol))
    }

    /// Returns the instrument if there is a single one.
    pub(crate) fn only(&self) -> Option<&FeedInstrument> {
        match &self.sorted[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// Reads a price in the units of its instrument.
pub(crate) fn read_price(instrument: &FeedInstrument, text: &str) -> Result<Price, FrameError> {
    let decimals = instrument.price_decimals;
    read_units(text, decimals).map(Price).ok_or_else(|| misfit(instrument, "price", text, decimals))
}

/// Reads a quantity in the units of its instrument.
pub(crate) fn read_quantity(instrument: &FeedInstrument, text: &str) -> Result<Quantity, FrameError> {
    let decimals = instrument.quantity_decimals;
    read_units(text, decimals).map(Quantity).ok_or_else(|| misfit(instrument, "quantity", text, decimals))
}

/// Returns the error of a number that does not fit its instrument.
pub(crate) fn misfit(instrument: &FeedInstrument, field: &'static str, text: &str, decimals: u8) -> FrameError {
    let (instrument, symbol) = (instrument.name.clone(), instrument.symbol);
    FrameError::Number { instrument, symbol, field, text: printable(text), decimals }
}

/// Reads a decimal; none if it is negative or does not fit.
fn read_units(text: &str, decimals: u8) -> Option<i64> {
    parse_decimal(text, decimals).ok().filter(|units| *units >= 0)
}

//! Instruments of a line, by the exchange's name and by the number of the OMS.

use tickpath_market::{ExecId, Side, SymbolId};

use crate::config::LineInstrument;

/// Bits of a trade id in an execution id: the exchange counts the trades of each instrument from zero.
const TRADE_BITS: u32 = 40;
/// Highest number of an instrument that fits an execution id.
pub(crate) const MAX_SYMBOL: u32 = (1 << 22) - 1;

/// The instruments of a line. Other modules name an instrument by its place here.
pub(crate) struct InstrumentTable {
    list: Vec<LineInstrument>,
    /// Places in the order of the names, and of the numbers.
    by_name: Vec<usize>,
    by_symbol: Vec<usize>,
}

impl InstrumentTable {
    pub(crate) fn new(list: Vec<LineInstrument>) -> Self {
        let (mut by_name, mut by_symbol): (Vec<usize>, Vec<usize>) =
            (0..list.len()).map(|place| (place, place)).unzip();
        by_name.sort_by(|a, b| list[*a].name.cmp(&list[*b].name));
        by_symbol.sort_by_key(|place| list[*place].symbol);
        Self { list, by_name, by_symbol }
    }

    /// Returns the number of instruments.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the place of the instrument with this name.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let found = self.by_name.binary_search_by(|place| self.list[*place].name.as_bytes().cmp(name)).ok()?;
        Some(self.by_name[found])
    }

    /// Returns the place of the instrument with this number.
    #[inline]
    pub(crate) fn find_symbol(&self, symbol: SymbolId) -> Option<usize> {
        let found = self.by_symbol.binary_search_by_key(&symbol, |place| self.list[*place].symbol).ok()?;
        Some(self.by_symbol[found])
    }

    /// Returns an instrument by its place.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> &LineInstrument {
        &self.list[place]
    }

    /// Returns the execution id of a fill: instrument, trade and side, so that it is unique across instruments, and for
    /// the two sides of a trade between two orders of one account. None if the trade id is too large.
    #[inline]
    pub(crate) fn exec_id(&self, place: usize, trade: u64, side: Side) -> Option<ExecId> {
        let symbol = u64::from(self.list[place].symbol.0) + 1;
        let is_sell = u64::from(side == Side::Sell);
        (trade >> TRADE_BITS == 0).then_some(ExecId(symbol << (TRADE_BITS + 1) | trade << 1 | is_sell))
    }
}

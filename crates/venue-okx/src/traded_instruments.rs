//! Instruments of a line: found by their numbers and by their names, with the one place where quantities become OKX's
//! sizes and sizes become quantities.

use std::collections::HashMap;

use tickpath_market::{ExecId, Quantity, SCALE, SymbolId};

use crate::config::{LineInstrument, OkxLineError};
use crate::stable_hash::stable_hash;

/// Bits of an execution's id that hold OKX's trade id, and of the number of the instrument above them.
const TRADE_BITS: u32 = 40;

/// Instruments, by index.
#[derive(Debug)]
pub(crate) struct TradedInstruments {
    list: Vec<TradedInstrument>,
    by_symbol: HashMap<u32, usize>,
    by_name: HashMap<String, usize>,
}

/// An instrument.
#[derive(Debug)]
pub(crate) struct TradedInstrument {
    pub name: String,
    pub symbol: SymbolId,
    pub code: u64,
    pub is_derivative: bool,
    /// Quantity of one contract, and smallest step of a quantity.
    contract: i64,
    step: i64,
    /// Number of the instrument in the ids of its executions.
    execution_space: u64,
}

impl TradedInstruments {
    /// Makes a table, and refuses instruments whose orders and reports could not be assigned.
    pub fn new(instruments: &[LineInstrument]) -> Result<Self, OkxLineError> {
        let (mut by_symbol, mut by_name) = (HashMap::new(), HashMap::new());
        let mut list = Vec::with_capacity(instruments.len());
        for (index, instrument) in instruments.iter().enumerate() {
            list.push(TradedInstrument::new(instrument)?);
            let is_known = by_symbol.insert(instrument.symbol.0, index).is_some()
                | by_name.insert(instrument.name.clone(), index).is_some();
            if is_known {
                return Err(OkxLineError::Duplicate(instrument.name.clone()));
            }
        }
        Ok(Self { list, by_symbol, by_name })
    }

    /// Returns the instruments.
    pub fn iter(&self) -> impl Iterator<Item = &TradedInstrument> {
        self.list.iter()
    }

    /// Returns the number of instruments.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the index of the instrument with this number.
    #[inline]
    pub fn find(&self, symbol: SymbolId) -> Option<usize> {
        self.by_symbol.get(&symbol.0).copied()
    }

    /// Returns the index of the instrument with this name.
    #[inline]
    pub fn find_name(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns an instrument by an index that this table has returned.
    #[inline]
    pub fn get(&self, index: usize) -> &TradedInstrument {
        &self.list[index]
    }
}

impl TradedInstrument {
    fn new(instrument: &LineInstrument) -> Result<Self, OkxLineError> {
        let LineInstrument { name, symbol, code, lot, contract, is_derivative } = instrument;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(OkxLineError::Name(name.clone()));
        }
        if contract.0 <= 0 || lot.0 < 0 {
            return Err(OkxLineError::Contract(name.clone()));
        }
        // The OMS's number, and not OKX's code: a code may be fetched later or change, and then the fills of an order that
        // works would be taken for others.
        let execution_space = u64::from(symbol.0 + 1);
        Ok(Self {
            name: name.clone(),
            symbol: *symbol,
            code: *code,
            is_derivative: *is_derivative,
            contract: contract.0,
            step: if lot.0 > 0 { lot.0 } else { contract.0 },
            execution_space,
        })
    }

    /// Returns a quantity as OKX's size, in units of 10⁻⁸; none if the quantity is no multiple of the lot.
    #[inline]
    pub fn size_of(&self, quantity: Quantity) -> Option<i64> {
        if !self.is_derivative {
            return Some(quantity.0);
        }
        let (scaled, contract) = (i128::from(quantity.0) * i128::from(SCALE), i128::from(self.contract));
        let is_multiple = quantity.0 % self.step == 0 && scaled % contract == 0;
        if is_multiple { i64::try_from(scaled / contract).ok() } else { None }
    }

    /// Returns OKX's size, in units of 10⁻⁸, as a quantity.
    #[inline]
    pub fn quantity_of(&self, size: i64) -> Result<Quantity, String> {
        if !self.is_derivative {
            return Ok(Quantity(size));
        }
        let (scaled, scale) = (i128::from(size) * i128::from(self.contract), i128::from(SCALE));
        let quantity = if scaled % scale == 0 { i64::try_from(scaled / scale).ok() } else { None };
        quantity
            .map(Quantity)
            .ok_or_else(|| format!("a size of {} is no quantity of eight decimals; correct its contract", self.name))
    }

    /// Returns the id of an execution: OKX's trade ids are unique for an instrument alone, so that the OMS's number of the
    /// instrument stands above them. A trade id that does not fit is hashed.
    pub fn execution_id(&self, trade_id: &str) -> ExecId {
        match trade_id.parse::<u64>() {
            Ok(number) if number >> TRADE_BITS == 0 => ExecId(self.execution_space << TRADE_BITS | number),
            _ => ExecId(stable_hash(&[self.name.as_str(), trade_id]).max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn swap(lot: i64, contract: i64) -> TradedInstrument {
        let (name, symbol) = ("BTC-USDT-SWAP".to_owned(), SymbolId(1));
        let (lot, contract) = (Quantity(lot), Quantity(contract));
        TradedInstrument::new(&LineInstrument { name, symbol, code: 7, lot, contract, is_derivative: true })
            .expect("the instrument is in order")
    }

    proptest! {
        #[test]
        fn sizes_are_quantities_again(contracts in 0_i64..1_000_000_000, contract in 1_i64..1_000_000_000) {
            let swap = swap(0, contract);
            let quantity = Quantity(contracts * contract);
            prop_assert_eq!(swap.size_of(quantity), Some(contracts * SCALE));
            prop_assert_eq!(swap.quantity_of(contracts * SCALE), Ok(quantity));
        }

        #[test]
        fn quantities_between_two_lots_are_refused(lots in 0_i64..1_000_000, rest in 1_i64..1_000_000) {
            let swap = swap(1_000_000, 100_000_000);
            prop_assert_eq!(swap.size_of(Quantity(lots * 1_000_000)), Some(lots * 1_000_000));
            prop_assert_eq!(swap.size_of(Quantity(lots * 1_000_000 + rest)), None);
        }
    }

    #[test]
    fn an_execution_is_named_by_its_instrument_and_its_trade() {
        let swap = swap(0, SCALE);
        // One above the OMS's number of the instrument.
        assert_eq!(swap.execution_id("242589207"), ExecId(2 << 40 | 242_589_207));
        let hashed = ["1099511627776", "-3", "x"].map(|text| swap.execution_id(text));
        assert!(hashed.iter().all(|id| id.0 != 0) && hashed[0] != hashed[1] && hashed[1] != hashed[2]);
    }
}

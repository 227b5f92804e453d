//! Subscribed instruments, found by their names and by their codes.

use std::collections::HashMap;

use tickpath_feed::FeedInstrument;
use tickpath_market::MAX_DECIMALS;

/// Errors of instruments that cannot be subscribed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OkxInstrumentError {
    /// The name cannot be one of OKX.
    #[error("'{0}' is no name of an instrument; write it as OKX lists it, like BTC-USDT-SWAP")]
    Name(String),
    /// Two instruments have the same name.
    #[error("the instrument '{0}' is there twice; remove one")]
    Duplicate(String),
    /// Two instruments have the same code.
    #[error("the instrument '{name}' has the code {code} of another one; fetch the instruments again")]
    DuplicateCode {
        /// Name of the second instrument.
        name: String,
        /// Code of both.
        code: u64,
    },
    /// Numbers of the instrument do not fit 64 bits.
    #[error("the instrument '{name}' has {decimals} decimals, and {max} fit 64 bits; correct them", max = MAX_DECIMALS)]
    Decimals {
        /// Name of the instrument.
        name: String,
        /// Decimals of its prices or quantities.
        decimals: u8,
    },
}

/// Subscribed instruments. The last one found is compared first, because frames of an instrument come in bursts.
#[derive(Debug)]
pub(crate) struct InstrumentTable {
    instruments: Vec<FeedInstrument>,
    by_name: HashMap<Box<[u8]>, usize>,
    by_code: HashMap<u64, usize>,
    last: usize,
}

impl InstrumentTable {
    /// Makes a table, and refuses instruments that messages could not be assigned to.
    pub(crate) fn new(instruments: &[FeedInstrument]) -> Result<Self, OkxInstrumentError> {
        let (mut by_name, mut by_code) = (HashMap::<Box<[u8]>, usize>::new(), HashMap::new());
        for (index, instrument) in instruments.iter().enumerate() {
            let name = || instrument.name.clone();
            if instrument.name.is_empty() || instrument.name.contains(|c: char| c.is_control() || "\"\\".contains(c)) {
                return Err(OkxInstrumentError::Name(name()));
            }
            let decimals = instrument.price_decimals.max(instrument.quantity_decimals);
            if decimals > MAX_DECIMALS {
                return Err(OkxInstrumentError::Decimals { name: name(), decimals });
            }
            if by_name.insert(instrument.name.as_bytes().into(), index).is_some() {
                return Err(OkxInstrumentError::Duplicate(name()));
            }
            if instrument.code != 0 && by_code.insert(instrument.code, index).is_some() {
                return Err(OkxInstrumentError::DuplicateCode { name: name(), code: instrument.code });
            }
        }
        Ok(Self { instruments: instruments.to_vec(), by_name, by_code, last: 0 })
    }

    /// Returns the instrument with this name.
    #[inline]
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<&FeedInstrument> {
        if self.instruments.get(self.last).is_none_or(|last| last.name.as_bytes() != name) {
            self.last = *self.by_name.get(name)?;
        }
        self.instruments.get(self.last)
    }

    /// Returns the instrument with this code, as OKX's binary protocol names it.
    #[inline]
    pub(crate) fn find_code(&mut self, code: u64) -> Option<&FeedInstrument> {
        if self.instruments.get(self.last).is_none_or(|last| last.code != code) {
            self.last = *self.by_code.get(&code)?;
        }
        self.instruments.get(self.last).filter(|found| found.code != 0)
    }

    /// Returns all instruments.
    pub(crate) fn instruments(&self) -> &[FeedInstrument] {
        &self.instruments
    }
}

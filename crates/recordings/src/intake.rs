//! Intake of a file's messages: numbers for the names, times that never decrease, counts.

use std::collections::HashMap;
use std::ops::ControlFlow;

use tickpath_market::SymbolId;

use crate::counts::ImportCounts;
use crate::message::MarketMessage;

/// Max length of an instrument's name in a file, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Taker of messages: the receive time in nanoseconds since the Unix epoch, the instrument's name, and the message.
pub(crate) type TakeMessage<'a> = dyn FnMut(u64, &str, MarketMessage) -> ControlFlow<()> + 'a;

/// Counts rows, numbers instruments, and passes messages on.
pub(crate) struct Intake<'a> {
    take: &'a mut TakeMessage<'a>,
    pub counts: ImportCounts,
    /// Names of the instruments, by number.
    names: Vec<String>,
    numbers: HashMap<Vec<u8>, SymbolId>,
    /// Number of the instrument asked for last: most rows have the name of the row before.
    last: SymbolId,
    latest_ns: u64,
    is_stopped: bool,
}

impl<'a> Intake<'a> {
    pub fn new(unit: &'static str, take: &'a mut TakeMessage<'a>) -> Self {
        Self {
            take,
            counts: ImportCounts::new(unit),
            names: Vec::new(),
            numbers: HashMap::new(),
            last: SymbolId(0),
            latest_ns: 0,
            is_stopped: false,
        }
    }

    /// Begins the next row of the file.
    pub fn begin_row(&mut self) {
        self.counts.rows += 1;
    }

    /// Returns the number of an instrument, from 0 on in the order of the calls. To be called only for a message that
    /// is passed on, so that each number has a message.
    pub fn symbol(&mut self, name: &[u8]) -> Result<SymbolId, String> {
        if self.names.get(self.last.0 as usize).is_some_and(|last| last.as_bytes() == name) {
            return Ok(self.last);
        }
        self.last = match self.numbers.get(name) {
            Some(&known) => known,
            None => self.add_symbol(name)?,
        };
        Ok(self.last)
    }

    fn add_symbol(&mut self, name: &[u8]) -> Result<SymbolId, String> {
        let text = String::from_utf8_lossy(name).into_owned();
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.iter().all(u8::is_ascii_graphic) {
            return Err(format!("'{text}' is no instrument; use 1 to {MAX_NAME_BYTES} printable ASCII characters"));
        }
        let number = SymbolId(self.names.len() as u32);
        self.names.push(text);
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    /// Passes on a message whose symbol is a number of [`Self::symbol`].
    pub fn add(&mut self, utc_ns: u64, message: MarketMessage) {
        if self.is_stopped {
            return;
        }
        let counts = &mut self.counts;
        match message {
            MarketMessage::Top(_) => counts.tops += 1,
            MarketMessage::Trade(_) => counts.trades += 1,
            MarketMessage::Level(_) => counts.levels += 1,
        }
        counts.out_of_order += u64::from(utc_ns < self.latest_ns);
        self.latest_ns = self.latest_ns.max(utc_ns);
        let name = &self.names[message.symbol().0 as usize];
        self.is_stopped = (self.take)(self.latest_ns, name, message).is_break();
    }

    /// Numbers the instrument of a message, and passes the message on.
    pub fn add_named(&mut self, utc_ns: u64, name: &[u8], mut message: MarketMessage) -> Result<(), String> {
        message.set_symbol(self.symbol(name)?);
        self.add(utc_ns, message);
        Ok(())
    }

    /// Counts the current row as bad, if it could not be read.
    pub fn end_row(&mut self, read: Result<(), String>) {
        if let Err(why) = read {
            self.counts.add_bad(&why);
        }
    }

    /// Returns true once the taker wants no more messages.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

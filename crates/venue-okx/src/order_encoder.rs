//! Requests as bytes, without a connection: to measure the encoding, and to compare it.

use tickpath_market::Request;

use crate::config::{LineInstrument, OkxLineError};
use crate::order_naming::OrderNaming;
use crate::request_writer::RequestWriter;
use crate::traded_instruments::TradedInstruments;

/// The writer of requests that a line has, alone. It writes into one buffer, and allocates nothing once it is made.
#[derive(Debug)]
pub struct OrderEncoder {
    writer: RequestWriter,
    instruments: TradedInstruments,
}

impl OrderEncoder {
    /// Makes the encoder of an OMS, by the id of its journal, for these instruments.
    pub fn new(instruments: &[LineInstrument], oms: u64) -> Result<Self, OkxLineError> {
        let mut writer = RequestWriter::default();
        writer.set_naming(OrderNaming::of(oms));
        Ok(Self { writer, instruments: TradedInstruments::new(instruments)? })
    }

    /// Returns the text that a line sends for a request with this number, valid until `expires_ms` in milliseconds
    /// since the Unix epoch. None for a request that a line refuses or answers itself.
    #[inline]
    pub fn encode(&mut self, number: u64, request: &Request, expires_ms: u64) -> Option<&str> {
        let instrument = self.instruments.get(self.instruments.find(request.symbol())?);
        self.writer.write(number, request, instrument, expires_ms).ok()?;
        Some(self.writer.text())
    }
}

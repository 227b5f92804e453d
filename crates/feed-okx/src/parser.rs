//! The parser: chooses the reader of a frame, and passes on the messages of its batch.

use tickpath_feed::{FeedInstrument, Frame, FrameError, FrameParser, MarketEvent};

use crate::batch::MessageBatch;
use crate::complaint::shown;
use crate::envelope::{OkxEvent, TextFrame, read_envelope};
use crate::instrument_table::{InstrumentTable, OkxInstrumentError};
use crate::push::read_push;
use crate::sbe::read_sbe;
use crate::scan::scan_push;

/// Reader of OKX's frames: JSON, and SBE of schema 1.
#[derive(Debug)]
pub struct OkxParser {
    table: InstrumentTable,
    batch: MessageBatch,
    unusual_frames: u64,
}

impl OkxParser {
    /// Makes a parser for these instruments. Binary frames need the codes of the instruments, text frames their names.
    pub fn new(instruments: &[FeedInstrument]) -> Result<Self, OkxInstrumentError> {
        let table = InstrumentTable::new(instruments)?;
        Ok(Self { table, batch: MessageBatch::default(), unusual_frames: 0 })
    }

    /// Returns the number of text frames with market data that were not in OKX's usual spelling. Each was read by the
    /// complete reader, which is several times slower: a count that rises shows that OKX has changed its spelling.
    pub fn unusual_frames(&self) -> u64 {
        self.unusual_frames
    }

    /// Reads a frame, passes on its messages, and returns its event if it is one without a message.
    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    pub(crate) fn read(
        &mut self,
        frame: Frame<'_>,
        take: &mut dyn FnMut(MarketEvent<'_>),
    ) -> Result<Option<OkxEvent>, FrameError> {
        self.batch.clear();
        match frame {
            Frame::Text(bytes) => {
                if scan_push(bytes, &mut self.table, &mut self.batch).is_none() {
                    return self.read_completely(bytes, take);
                }
            }
            Frame::Binary(bytes) => read_sbe(bytes, &mut self.table, &mut self.batch)?,
        }
        self.batch.pass_on(take);
        Ok(None)
    }

    /// Returns the instruments of the parser.
    pub(crate) fn instruments(&self) -> &[FeedInstrument] {
        self.table.instruments()
    }

    fn read_completely(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(MarketEvent<'_>),
    ) -> Result<Option<OkxEvent>, FrameError> {
        self.batch.clear();
        match read_envelope(bytes)? {
            TextFrame::Event(OkxEvent::Maintenance) => take(MarketEvent::Maintenance),
            TextFrame::Event(event) => return Ok(Some(event)),
            TextFrame::Push(head) => {
                let name = &head.key.instrument;
                let unknown = || FrameError::UnknownInstrument(shown(name));
                let instrument = self.table.find(name.as_bytes()).ok_or_else(unknown)?;
                read_push(bytes, &head, instrument, &mut self.batch)?;
                self.unusual_frames += 1;
                self.batch.pass_on(take);
            }
        }
        Ok(None)
    }
}

impl FrameParser for OkxParser {
    fn parse(&mut self, frame: Frame<'_>, take: &mut dyn FnMut(MarketEvent<'_>)) -> Result<(), FrameError> {
        match self.read(frame, take)? {
            Some(OkxEvent::Refused(text) | OkxEvent::ChannelRefused { text, .. }) => Err(FrameError::Exchange(text)),
            _ => Ok(()),
        }
    }
}

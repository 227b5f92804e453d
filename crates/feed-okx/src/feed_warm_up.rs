//! The warm-up of an idle feed: a quote of its own comes out of private memory and is read.

use std::hint::black_box;

use tickpath_clock::HostClock;
use tickpath_feed::{FeedInstrument, Frame, FrameParser};
use tickpath_web_client::Rehearsal;

use crate::parser::OkxParser;

/// The receive path on private memory.
pub(crate) struct FeedWarmUp {
    parser: OkxParser,
    frame: String,
    connection: Rehearsal,
}

impl FeedWarmUp {
    /// None if there is no instrument, or no memory for it.
    pub(crate) fn new(instruments: &[FeedInstrument], clock: HostClock) -> Option<Box<Self>> {
        let name = &instruments.first()?.name;
        let frame = format!(
            r#"{{"arg":{{"channel":"bbo-tbt","instId":"{name}"}},"data":[{{"asks":[["2","16","0","5"]],"bids":[["1","11","0","19"]],"ts":"1749044565306","seqId":55729075884}}]}}"#
        );
        let parser = OkxParser::new(instruments).ok()?;
        Some(Box::new(Self { parser, frame, connection: Rehearsal::new(clock)? }))
    }

    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    pub(crate) fn run(&mut self) {
        let Self { parser, frame, connection } = self;
        connection.receive_text(frame.as_bytes(), &mut |text| {
            let read = parser.parse(Frame::Text(text), &mut |event| {
                black_box(event);
            });
            black_box(read.is_ok());
        });
    }
}

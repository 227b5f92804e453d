//! The warm-up of an idle feed: a quote of its own comes out of private memory and is read.

use std::hint::black_box;

use tickpath_clock::HostClock;
use tickpath_feed::{FeedInstrument, Frame, FrameParser};
use tickpath_web_client::Rehearsal;

use crate::message::TimeUnit;
use crate::parser::BinanceParser;

/// The receive path on private memory.
pub(crate) struct FeedWarmUp {
    parser: BinanceParser,
    frame: String,
    connection: Rehearsal,
}

impl FeedWarmUp {
    /// None if there is no instrument, or no memory for it.
    pub(crate) fn new(instruments: &[FeedInstrument], unit: TimeUnit, clock: HostClock) -> Option<Box<Self>> {
        let name = &instruments.first()?.name;
        let stream = name.to_lowercase();
        let frame = format!(
            r#"{{"stream":"{stream}@bookTicker","data":{{"u":400900217,"s":"{name}","b":"1.00000000","B":"31.00000000","a":"2.00000000","A":"40.00000000"}}}}"#
        );
        let parser = BinanceParser::new(instruments, unit);
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

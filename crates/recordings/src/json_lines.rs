//! Lines `LOCAL_NS JSON`, the form of `tickpath_market::replay`: best bids and offers, and trades.

use std::io::{self, Read};

use tickpath_market::replay::{LineContent, MarketTick, read_line};

use crate::intake::Intake;
use crate::lines::LineReader;
use crate::message::MarketMessage;

/// Reads all lines.
pub(crate) fn read_json_lines<R: Read>(lines: &mut LineReader<R>, intake: &mut Intake<'_>) -> io::Result<()> {
    let read = lines.for_each(intake, |line, intake| match read_line(line)? {
        LineContent::Tick(utc_ns, symbol, tick) => {
            let message = match tick {
                MarketTick::Top(top) => MarketMessage::Top(top),
                MarketTick::Trade(trade) => MarketMessage::Trade(trade),
            };
            intake.add_named(utc_ns, symbol.as_str().as_bytes(), message)
        }
        LineContent::Depth => {
            intake.counts.skip("depth messages");
            Ok(())
        }
        LineContent::Other => {
            intake.counts.skip("other messages");
            Ok(())
        }
    });
    read.map(drop)
}

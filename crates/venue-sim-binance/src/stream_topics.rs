//! Names of the market streams: a symbol in lower case, and a kind. `btcusdt@depth5@100ms` is one of five levels.

use tickpath_venue_sim_web::SimInstrument;

/// A stream that the exchange has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamTopic {
    /// Index of the instrument.
    pub(crate) instrument: usize,
    pub(crate) kind: StreamKind,
}

/// Kind of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StreamKind {
    BookTicker,
    Trade,
    AggregatedTrade,
    Ticker,
    MiniTicker,
    /// Changes of the book.
    Depth(Cadence),
    /// So many levels of the book.
    Levels(usize, Cadence),
}

/// Interval at which a stream is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cadence {
    /// 100 ms.
    Fast,
    /// 1,000 ms.
    Slow,
}

impl StreamTopic {
    /// Reads the name of a stream; none if the exchange does not have it.
    pub(crate) fn read(name: &str, instruments: &[SimInstrument]) -> Option<Self> {
        let (symbol, kind) = name.split_once('@')?;
        let kind = match kind {
            "bookTicker" => StreamKind::BookTicker,
            "trade" => StreamKind::Trade,
            "aggTrade" => StreamKind::AggregatedTrade,
            "ticker" => StreamKind::Ticker,
            "miniTicker" => StreamKind::MiniTicker,
            _ => read_depth(kind)?,
        };
        let instrument = instruments.iter().position(|instrument| instrument.name.to_lowercase() == symbol)?;
        Some(Self { instrument, kind })
    }

    /// Returns the interval of the stream; none if each event is sent at once.
    pub(crate) fn cadence(self) -> Option<Cadence> {
        match self.kind {
            StreamKind::BookTicker | StreamKind::Trade | StreamKind::AggregatedTrade => None,
            StreamKind::Ticker | StreamKind::MiniTicker => Some(Cadence::Slow),
            StreamKind::Depth(cadence) | StreamKind::Levels(_, cadence) => Some(cadence),
        }
    }
}

impl Cadence {
    /// All intervals.
    pub(crate) const ALL: [Self; 2] = [Self::Fast, Self::Slow];

    /// Returns the interval in nanoseconds.
    pub(crate) fn ns(self) -> u64 {
        match self {
            Self::Fast => 100_000_000,
            Self::Slow => 1_000_000_000,
        }
    }
}

fn read_depth(kind: &str) -> Option<StreamKind> {
    let (kind, cadence) = match kind.split_once('@') {
        None | Some((_, "1000ms")) => (kind.trim_end_matches("@1000ms"), Cadence::Slow),
        Some((kind, "100ms")) => (kind, Cadence::Fast),
        Some(_) => return None,
    };
    match kind.strip_prefix("depth")? {
        "" => Some(StreamKind::Depth(cadence)),
        "5" => Some(StreamKind::Levels(5, cadence)),
        "10" => Some(StreamKind::Levels(10, cadence)),
        "20" => Some(StreamKind::Levels(20, cadence)),
        _ => None,
    }
}

//! The lines of a `[[venue]]`: their addresses and their limits.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use tickpath_exchanges::OrderExchange;
use tickpath_market::VenueId;
use tickpath_oms_runtime::lines::MAX_LINES;
use tickpath_oms_runtime::{LineFactory, LineId, OmsLineConfig};
use tickpath_settings::Section;
use tickpath_venue::Line;
use tickpath_venue_native::{LineAddress, LinePassword, TcpLine};

use super::exchange_lines::{ExchangeKeys, ExchangeLine, VenueInstrument};

/// Line to a venue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineSettings {
    /// Far end, and how it is reached.
    pub target: LineTarget,
    /// Max requests in any second; zero for no limit.
    pub rate_per_second: u32,
    /// Max requests without proof of receipt.
    pub window: u32,
    /// Time without the venue after which the requests sent over the line are in doubt, in milliseconds.
    pub lost_after_ms: u32,
}

/// Far end of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineTarget {
    /// An exchange of our own protocol.
    Native {
        /// Address.
        address: LineAddress,
        /// Password that each connect proves; none if the exchange asks for none.
        password: Option<LinePassword>,
    },
    /// An exchange with a protocol of its own.
    Exchange(ExchangeLine),
}

/// URL of a line.
enum LineUrl {
    Native(LineAddress),
    /// The exchange, and the URL without its name.
    Exchange(OrderExchange, String),
}

/// A text that is no URL of a line.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{0}' is no address of a line; use tcp://HOST:PORT, unix:///PATH, okx+wss://HOST/PATH or binance+wss://HOST/PATH"
)]
struct ParseLineUrlError(String);

/// Takes the lines of a venue; none if it is reached by lanes.
pub(super) fn read_lines(venue: &mut Section<'_>) -> Vec<LineSettings> {
    let lines = venue.sections("lines", LineSettings::from_section);
    if lines.len() > MAX_LINES {
        venue.add_mistake("lines", format!("a venue has at most {MAX_LINES} lines, these are {}", lines.len()));
    }
    let lines: Vec<LineSettings> = lines.into_iter().flatten().collect();
    if lines.windows(2).any(|two| two[0].exchange() != two[1].exchange()) {
        venue.add_mistake("lines", "all lines of a venue lead to one exchange; give the other a [[venue]] of its own");
    }
    lines
}

/// Returns the lines of the file on which the URLs of each venue's lines stand, in their order.
pub(super) fn locations(file: &Path) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    // Keys that are not read count as mistakes, and only the lines are wanted here.
    let _ = tickpath_settings::read(file, |top| {
        top.sections("venue", |venue| found.push(venue.sections("lines", |line| line.line("url"))));
    });
    found
}

/// Returns the lines of a venue as the OMS opens them.
pub(super) fn configs<'a>(
    oms: &'a str,
    venue: VenueId,
    lines: &'a [LineSettings],
    instruments: Vec<VenueInstrument>,
    journal: &'a Path,
) -> impl Iterator<Item = OmsLineConfig> + 'a {
    let instruments = Arc::new(instruments);
    lines.iter().zip(0..).map(move |(settings, line)| {
        let (target, name, instruments) = (settings.target.clone(), format!("{oms} {line}"), instruments.clone());
        let account_file = journal.join(format!("venue-{}.account", venue.0));
        let open = LineFactory::new(move || target.open(&name, venue, &instruments, &account_file));
        let LineSettings { rate_per_second, window, lost_after_ms, .. } = *settings;
        let lost_after_ns = u64::from(lost_after_ms) * 1_000_000;
        OmsLineConfig { id: LineId { venue, line }, open, rate_per_second, window, lost_after_ns }
    })
}

impl LineSettings {
    /// Returns the exchange whose protocol the line speaks; none for our own protocol.
    pub fn exchange(&self) -> Option<OrderExchange> {
        match &self.target {
            LineTarget::Native { .. } => None,
            LineTarget::Exchange(line) => Some(line.exchange),
        }
    }

    fn from_section(line: &mut Section<'_>) -> Option<Self> {
        let rate_per_second = line.number("rate_per_second", 0..=1_000_000).unwrap_or(0);
        let window = line.number("window", 1..=1_000_000).unwrap_or(1_000);
        let lost_after_ms = line.number("lost_after_ms", 100..=86_400_000).unwrap_or(10_000);
        let (password_file, keys) = (line.path("password_file"), ExchangeKeys::read(line));
        let target = match line.require_parsed::<LineUrl>("url")? {
            LineUrl::Native(address) => {
                ExchangeKeys::refuse_all(line);
                let password = password_file.and_then(|file| {
                    let read = LinePassword::read(&file);
                    read.map_err(|reason| line.add_mistake("password_file", reason)).ok()
                });
                LineTarget::Native { address, password }
            }
            LineUrl::Exchange(exchange, url) => {
                if line.has("password_file") {
                    line.add_mistake(
                        "password_file",
                        format!("{exchange} asks for an API key; write credentials instead"),
                    );
                }
                LineTarget::Exchange(keys.into_line(line, exchange, url))
            }
        };
        Some(Self { target, rate_per_second, window, lost_after_ms })
    }
}

impl LineTarget {
    fn open(
        &self,
        name: &str,
        venue: VenueId,
        instruments: &[VenueInstrument],
        account_file: &Path,
    ) -> Result<Box<dyn Line>, String> {
        let (address, password) = match self {
            Self::Exchange(line) => return line.open(venue, instruments, Some(account_file.to_owned())),
            Self::Native { address, password } => (address.clone(), password.clone()),
        };
        let line = TcpLine::new(address, name).map_err(|e| e.to_string())?.with_venue(venue);
        let line = match password {
            Some(password) => line.with_password(password),
            None => line,
        };
        Ok(Box::new(line))
    }
}

impl fmt::Display for LineTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native { address, .. } => address.fmt(f),
            Self::Exchange(line) => line.fmt(f),
        }
    }
}

impl FromStr for LineUrl {
    type Err = ParseLineUrlError;

    fn from_str(url: &str) -> Result<Self, ParseLineUrlError> {
        for exchange in OrderExchange::ALL {
            let rest = url.strip_prefix(exchange.name()).and_then(|rest| rest.strip_prefix('+'));
            if let Some(address) = rest.filter(|rest| ["wss://", "ws://"].iter().any(|scheme| rest.starts_with(scheme)))
            {
                return Ok(Self::Exchange(exchange, address.to_owned()));
            }
        }
        url.parse().map(Self::Native).map_err(|_| ParseLineUrlError(url.to_owned()))
    }
}

//! The lines of a `[[venue]]`: their addresses and their limits.

use tickpath_market::VenueId;
use tickpath_oms_runtime::lines::MAX_LINES;
use tickpath_oms_runtime::{LineFactory, LineId, OmsLineConfig};
use tickpath_settings::Section;
use tickpath_venue::Line;
use tickpath_venue_native::{LineAddress, LinePassword, TcpLine};

/// Line to a venue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineSettings {
    /// Address.
    pub url: LineAddress,
    /// Password that each connect proves; none if the exchange asks for none.
    pub password: Option<LinePassword>,
    /// Max requests in any second; zero for no limit.
    pub rate_per_second: u32,
    /// Max requests without proof of receipt.
    pub window: u32,
    /// Time without the venue after which the requests sent over the line are in doubt, in milliseconds.
    pub lost_after_ms: u32,
}

/// Takes the lines of a venue; none if it is reached by lanes.
pub(super) fn read_lines(venue: &mut Section<'_>) -> Vec<LineSettings> {
    let lines = venue.sections("lines", |line| {
        let rate_per_second = line.number("rate_per_second", 0..=1_000_000).unwrap_or(0);
        let window = line.number("window", 1..=1_000_000).unwrap_or(1_000);
        let lost_after_ms = line.number("lost_after_ms", 100..=86_400_000).unwrap_or(10_000);
        let password = line.path("password_file").and_then(|file| {
            let read = LinePassword::read(&file);
            read.map_err(|reason| line.add_mistake("password_file", reason)).ok()
        });
        line.require_parsed("url").map(|url| LineSettings { url, password, rate_per_second, window, lost_after_ms })
    });
    if lines.len() > MAX_LINES {
        venue.add_mistake("lines", format!("a venue has at most {MAX_LINES} lines, these are {}", lines.len()));
    }
    lines.into_iter().flatten().collect()
}

pub(super) fn configs<'a>(
    oms: &'a str,
    venue: VenueId,
    lines: &'a [LineSettings],
) -> impl Iterator<Item = OmsLineConfig> + 'a {
    lines.iter().zip(0..).map(move |(settings, line)| {
        let (address, password, name) = (settings.url.clone(), settings.password.clone(), format!("{oms} {line}"));
        let open = LineFactory::new(move || {
            let line = TcpLine::new(address.clone(), &name).map_err(|e| e.to_string())?.with_venue(venue);
            let line = match password.clone() {
                Some(password) => line.with_password(password),
                None => line,
            };
            Ok(Box::new(line) as Box<dyn Line>)
        });
        let LineSettings { rate_per_second, window, lost_after_ms, .. } = *settings;
        let lost_after_ns = u64::from(lost_after_ms) * 1_000_000;
        OmsLineConfig { id: LineId { venue, line }, open, rate_per_second, window, lost_after_ns }
    })
}

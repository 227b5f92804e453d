//! `tickpath venue check`: what to run before the first order of an OMS at an exchange.
//!
//! ```text
//!   REST: clock ─ account ─ instrument, table ─ limits      public facts, and one signed request
//!   line: connection ─ order ─ amend ─ status ─ reconnect ─ cancel       the line that an OMS would trade with
//! ```
//!
//! The order is post-only, the smallest that the exchange takes, and 20 % below the best bid. It is canceled at the end,
//! also if a check before that has failed.

mod findings;
mod instrument_rows;
mod line_probe;
mod permissions;
mod probe_order;
mod public_facts;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tickpath_clock::HostClock;
use tickpath_exchanges::OrderExchange;
use tickpath_feed::{ListedInstrument, Listing};
use tickpath_market::VenueId;
use tickpath_oms_server::settings::ExchangeLine;

use tickpath_cli_terminal::args::{CliUsageError, bail_usage};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{count_text, print_text};

use findings::CheckFindings;
use instrument_rows::InstrumentRows;
use line_probe::{LineProbe, ProbeFailure};
use permissions::AccountKeys;
use probe_order::ProbeOrder;
use public_facts::PublicFacts;

/// Number of the venue in the reports.
const VENUE: VenueId = VenueId(1);
/// Reason of a check that was not made because an earlier one has failed.
const NEEDS_EARLIER: &str = "an earlier check has failed";

#[derive(Debug, Args)]
pub struct VenueArgs {
    #[command(subcommand)]
    pub command: VenueCommand,
}

#[derive(Debug, Subcommand)]
pub enum VenueCommand {
    /// Check the clock, the key, the instruments, the line and an order at an exchange. The order is real: post-only, of
    /// the smallest quantity, 20 % below the market, and canceled at the end
    Check(VenueCheckArgs),
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Prints a line for each check: its name, good, failed or skipped, and the detail. Exit codes: 0 all \
                        checks are good; 1 a check has failed; 2 bad usage."
)]
pub struct VenueCheckArgs {
    /// The exchange
    #[arg(value_name = "EXCHANGE", value_enum)]
    pub exchange: OrderExchange,
    /// TOML file with key, secret, and for OKX passphrase, which only its owner may use (mode 0600)
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The key is one of OKX's demo trading, whose address is then the default
    #[arg(long)]
    pub demo: bool,
    /// Address of the exchange's WebSocket for orders, instead of the exchange's own
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Address of the exchange's REST interface; default: the one that belongs to the WebSocket
    #[arg(long, value_name = "URL")]
    pub rest_url: Option<String>,
    /// File of the only trusted certificate authorities; default: those of the system
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Instrument of the order; for binance the default is BTCUSDT
    #[arg(long, value_name = "NAME", default_value = "BTC-USDT", default_value_if("exchange", "binance", "BTCUSDT"))]
    pub instrument: String,
    /// Table of instruments to compare with the exchange's list
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Venue of the exchange in the table; default: OKX or BINANCE
    #[arg(long, value_name = "NAME", requires = "table")]
    pub venue: Option<String>,
}

pub fn run(args: &VenueArgs) -> anyhow::Result<CliOutcome> {
    let VenueCommand::Check(args) = &args.command;
    let line = line_of(args)?;
    let keys = AccountKeys::read(line.exchange, &args.key)?;
    let rest_url = line.rest_url.as_deref().unwrap_or_default();
    let facts = PublicFacts::new(args.exchange, rest_url, args.ca.as_deref())?;
    let venue = args.venue.clone().unwrap_or_else(|| args.exchange.feed().venue());
    let table = args.table.as_ref().map(|file| InstrumentRows::read(file, &venue)).transpose()?;

    let mut findings = CheckFindings::default();
    let order = check_facts(args, &facts, &keys, table.as_ref(), &mut findings);
    match order {
        Some(order) => check_line(&line, &order, &mut findings)?,
        None => skip_all(&mut findings, &["connection", "order", "amend", "status", "reconnect", "cancel"]),
    }
    print_text(&findings.table())?;
    Ok(if findings.has_failure() { CliOutcome::Lost } else { CliOutcome::Success })
}

/// Returns the line that the arguments describe.
fn line_of(args: &VenueCheckArgs) -> Result<ExchangeLine, CliUsageError> {
    let exchange = args.exchange;
    let own_url = match (exchange, args.demo) {
        (OrderExchange::Okx, false) => tickpath_venue_okx::PRIVATE_URL,
        (OrderExchange::Okx, true) => tickpath_venue_okx::DEMO_PRIVATE_URL,
        (OrderExchange::Binance, false) => tickpath_venue_binance::SPOT_ORDERS,
        (OrderExchange::Binance, true) => {
            bail_usage!("--demo is for okx alone; name Binance's test network with --url")
        }
    };
    let url = args.url.clone().unwrap_or_else(|| own_url.to_owned());
    let Some(rest_url) = args.rest_url.clone().or_else(|| exchange.rest_url(&url)) else {
        bail_usage!("the REST interface that belongs to {url} is not known; name it with --rest-url URL");
    };
    Ok(ExchangeLine {
        rest_url: Some(rest_url),
        ca: args.ca.clone(),
        is_demo: args.demo,
        ..ExchangeLine::new(exchange, url, args.key.clone())
    })
}

/// Makes the checks by REST. Returns the order for the checks of the line, if the exchange has its instrument.
fn check_facts(
    args: &VenueCheckArgs,
    facts: &PublicFacts,
    keys: &AccountKeys,
    table: Option<&InstrumentRows>,
    findings: &mut CheckFindings,
) -> Option<ProbeOrder> {
    let lead_ns = findings.add("clock", facts.clock()).map_or(0, |lead| lead.ns);
    let has_positions = args.instrument.matches('-').count() >= 2;
    findings.add("account", keys.check(&facts.client, lead_ns, args.demo, has_positions));
    let names: Vec<&str> = table.map(InstrumentRows::names).unwrap_or_default();
    let listing = facts.listing(&[&names[..], &[args.instrument.as_str()]].concat());
    let order = listing.as_ref().map_err(String::clone).and_then(|listing| order_in(args, facts, listing));
    let order = findings.add("instrument", order);
    match (table, &listing) {
        (Some(table), Ok(listing)) => {
            findings.add("table", table.compare(&listing.instruments));
        }
        (Some(_), Err(_)) => findings.skip("table", NEEDS_EARLIER),
        (None, _) => findings.skip("table", "no --table FILE is given"),
    }
    findings.add("limits", facts.rate_limits(&args.instrument));
    order
}

/// Returns the order in the instrument that the exchange lists.
fn order_in(args: &VenueCheckArgs, facts: &PublicFacts, listing: &Listing) -> Result<(ProbeOrder, String), String> {
    let found = listing.instruments.iter().find(|listed| listed.name == args.instrument);
    let found = found.ok_or_else(|| format!("{} is not in the exchange's list; name another one", args.instrument))?;
    if !found.is_live {
        return Err(format!("{} is not traded now; name another --instrument", found.name));
    }
    let order = ProbeOrder::new(found, facts.bid(found)?)?;
    let ListedInstrument { name, tick_size, lot, .. } = found;
    let listed = count_text(listing.instruments.len(), "instrument");
    Ok((order, format!("{listed} listed; {name} is live, tick size {tick_size}, lot {lot}")))
}

/// Makes the checks of the line. The order is canceled if it may work.
fn check_line(line: &ExchangeLine, order: &ProbeOrder, findings: &mut CheckFindings) -> anyhow::Result<()> {
    let opened = line.open(VENUE, std::slice::from_ref(&order.instrument), None).map_err(CliUsageError)?;
    let mut probe = LineProbe::new(HostClock::get()?, opened);
    let up = probe.connect().map(|time| ((), format!("logged in and reconciled after {time}")));
    let is_up = findings.add("connection", up).is_some();
    if !is_up {
        skip_all(findings, &["order", "amend", "status", "reconnect", "cancel"]);
        return Ok(());
    }
    let text = format!("buy {} {} at {}, post-only", order.quantity, order.instrument.name, order.price);
    match probe.place(order) {
        Ok(time) => {
            findings.add("order", Ok(((), format!("{text}, accepted after {time}"))));
            let amended = probe.amend(order).map(|time| ((), format!("price {} after {time}", order.amended)));
            findings.add("amend", amended);
            findings.add("status", probe.status(order).map(|text| ((), text)));
            let again = probe.connect().and_then(|time| Ok(((), format!("after {time} {}", probe.status(order)?))));
            findings.add("reconnect", again);
        }
        Err(ProbeFailure::Refused(why)) => {
            findings.add("order", Err::<((), String), _>(format!("{text}: {why}")));
            skip_all(findings, &["amend", "status", "reconnect", "cancel"]);
            return Ok(());
        }
        Err(ProbeFailure::Unanswered(why)) => {
            findings.add("order", Err::<((), String), _>(format!("{text}: {why}")));
            skip_all(findings, &["amend", "status"]);
            findings.add("reconnect", probe.connect().map(|time| ((), format!("after {time}"))));
        }
    }
    let canceled = probe.cancel(order).map(|time| ((), format!("canceled after {time}")));
    findings
        .add("cancel", canceled.map_err(|why| format!("{why}; look for the order at the exchange, it may still work")));
    Ok(())
}

fn skip_all(findings: &mut CheckFindings, names: &[&'static str]) {
    names.iter().for_each(|name| findings.skip(name, NEEDS_EARLIER));
}

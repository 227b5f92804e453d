//! `tickpath exchange --as okx|binance`: a simulated exchange that speaks the protocols of a real one.
//!
//! ```text
//!   websocket, rest ──> WebServer ──> OkxExchange or BinanceExchange ──> SimDesk <── quotes: walk, topic, or none
//! ```
//!
//! At its start it prints what a client needs, one fact a line: a name, spaces, and the value. The line `ready` is the
//! last. The exchange keeps its state in memory: orders and balances begin anew at each start, and so does its authority.
//! Ids of orders and trades continue, because they begin with the time.

mod accounts;
mod authority;
mod instruments;
mod market;
mod protocol;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context;
use clap::Args;
use tickpath_clock::utc_ns;
use tickpath_exchanges::OrderExchange;
use tickpath_venue_sim_web::{
    SimAccount, SimDesk, SimDeskConfig, SimInstrument, WebFaults, WebServer, WebServerConfig,
};

use tickpath_cli_terminal::args::CliUsageError;
use tickpath_cli_terminal::log_arguments::parse_log;
use tickpath_cli_terminal::outcome::stop_on_signals;
use tickpath_cli_terminal::print::print_text;

use accounts::{demo_account, market_account, read_accounts};
use authority::write_authority;
use instruments::{InitialPrice, default_instruments, initial_price, read_instruments};
use market::{MarketSource, MarketWalk, TickTopic};
use protocol::{SimulatedExchange, fees_e6, urls};

/// Max wait of a turn, in milliseconds: quotes move and a signal ends the exchange within this time.
const TURN_MS: u32 = 10;
const MAX_CONNECTIONS: usize = 1_024;
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Nanoseconds of an id: a restarted exchange repeats none unless it had more than a hundred a second.
const ID_NS: u64 = 10_000_000;
/// Columns of the names of facts.
const NAME_WIDTH: usize = 12;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options with --as")]
pub struct SimulatedExchangeArgs {
    /// Speak the protocols of a real exchange, so that any client of it can be pointed here: its REST and WebSocket
    /// interfaces for market data and orders. All that a client needs is printed, and nothing is kept after the end
    #[arg(long = "as", value_name = "EXCHANGE", value_enum, conflicts_with_all = ["config", "check"])]
    pub protocol: Option<OrderExchange>,
    /// Address to listen on; port 0 is any free port
    #[arg(long, value_name = "IP:PORT", default_value_t = LISTEN, requires = "protocol")]
    pub listen: SocketAddr,
    /// Serve ws:// and http:// instead of wss:// and https://
    #[arg(long, requires = "protocol")]
    pub no_tls: bool,
    /// File to which the certificate of the authority is written, which clients must trust; default: EXCHANGE-ca.pem. A
    /// file that is no such certificate is not overwritten
    #[arg(long, value_name = "FILE", requires = "protocol", conflicts_with = "no_tls")]
    pub write_ca: Option<PathBuf>,
    /// Table of instruments, as `tickpath instruments fetch` writes it; those with a price in --prices are traded.
    /// Default: BTC and ETH against USDT, and at OKX a swap
    #[arg(long, value_name = "FILE", requires = "prices")]
    pub instruments: Option<PathBuf>,
    /// Prices at the start
    #[arg(long, value_name = "NAME=PRICE[,…]", value_delimiter = ',', value_parser = initial_price)]
    #[arg(requires = "protocol")]
    pub prices: Vec<InitialPrice>,
    /// TOML file of the accounts: [[account]] with name, key, secret, for OKX passphrase, and balances = ["USDT 1000"].
    /// For an Ed25519 key of Binance, secret is the public key in PEM. Default: one account, which is printed
    #[arg(long, value_name = "FILE", requires = "protocol")]
    pub keys: Option<PathBuf>,
    /// TOML file of faults, each key optional: cut_after_ack, duplicate_push, ambiguous, rate_limited, clock_drift_ms, …
    #[arg(long, value_name = "FILE", requires = "protocol")]
    pub faults: Option<PathBuf>,
    /// Quotes from a topic in shared memory, shm://NAME, by the numbers of the instruments; default: a random walk
    #[arg(long, value_name = "URL", requires = "protocol", conflicts_with = "still")]
    pub ticks: Option<String>,
    /// Leave the quotes as they are at the start; only orders change them
    #[arg(long, requires = "protocol")]
    pub still: bool,
    /// Seed of the walk of the quotes: the same seed gives the same steps
    #[arg(long, value_name = "N", default_value_t = 1, requires = "protocol")]
    pub seed: u64,
}

/// Default address: any free port of the loopback.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Serves until the first signal to end.
pub fn run(args: &SimulatedExchangeArgs, protocol: OrderExchange) -> anyhow::Result<()> {
    let instruments = match &args.instruments {
        Some(file) => read_instruments(file, protocol, &args.prices)?,
        None => default_instruments(protocol, &args.prices)?,
    };
    let mut accounts = match &args.keys {
        Some(file) => read_accounts(file, protocol)?,
        None => vec![demo_account(&instruments)],
    };
    let facts = account_facts(&accounts, args.keys.as_deref());
    accounts.push(market_account(&instruments));
    let mut market = market_source(args, &instruments, accounts.len() - 1)?;
    let faults = match &args.faults {
        Some(file) => WebFaults::read(file).map_err(|e| CliUsageError(e.to_string()))?,
        None => WebFaults::none(),
    };
    let mut server = WebServer::open(&WebServerConfig {
        listen: args.listen,
        tls: !args.no_tls,
        max_connections: MAX_CONNECTIONS,
        max_message_bytes: MAX_MESSAGE_BYTES,
    })?;
    let (maker_fee_e6, taker_fee_e6) = fees_e6(protocol);
    let mut desk =
        SimDesk::new(SimDeskConfig { instruments: instruments.clone(), accounts, maker_fee_e6, taker_fee_e6 });
    desk.number_from(utc_ns() / ID_NS);
    let mut exchange = SimulatedExchange::new(protocol, desk, faults);
    let stop = stop_on_signals().context("cannot listen for signals")?;
    let served = server_facts(args, protocol, &server)?;
    print_text(&(served + &facts + &instrument_facts(&instruments) + &fact("ready", "Ctrl-C ends the exchange")))?;
    while !stop.load(Ordering::Relaxed) {
        market.turn(exchange.desk(), utc_ns())?;
        server.poll(TURN_MS, exchange.service());
    }
    Ok(())
}

fn market_source(
    args: &SimulatedExchangeArgs,
    instruments: &[SimInstrument],
    account: usize,
) -> anyhow::Result<MarketSource> {
    Ok(match &args.ticks {
        Some(url) => MarketSource::Topic(Box::new(TickTopic::new(parse_log(url)?, instruments))),
        None if args.still => MarketSource::Still,
        None => MarketSource::Walk(MarketWalk::new(args.seed, instruments, account)),
    })
}

/// Returns the addresses, and writes the certificate of the authority.
fn server_facts(
    args: &SimulatedExchangeArgs,
    protocol: OrderExchange,
    server: &WebServer,
) -> Result<String, CliUsageError> {
    let mut address = server.address();
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let mut text = fact("exchange", protocol.name());
    for (name, url) in urls(protocol, address, !args.no_tls) {
        text += &fact(name, &url);
    }
    if let Some(pem) = server.authority_pem() {
        let default = format!("{}-ca.pem", protocol.name());
        let file = args.write_ca.as_deref().unwrap_or(Path::new(&default));
        write_authority(file, pem)?;
        text += &fact("ca", &file.display().to_string());
    }
    Ok(text)
}

/// Returns the accounts; the secrets only of the demo account, which is no secret
fn account_facts(accounts: &[SimAccount], file: Option<&Path>) -> String {
    let mut text = String::new();
    for SimAccount { name, api_key, secret, passphrase, balances } in accounts {
        text += &(fact("account", name) + &fact("key", api_key));
        match file {
            Some(file) => text += &fact("secret", &format!("in {}", file.display())),
            None => text += &(fact("secret", secret) + &fact("passphrase", passphrase)),
        }
        for (currency, amount) in balances {
            text += &fact("balance", &format!("{currency} {amount}"));
        }
    }
    text
}

fn instrument_facts(instruments: &[SimInstrument]) -> String {
    let text = |SimInstrument { name, bid, ask, .. }: &SimInstrument| {
        fact("instrument", &format!("{name} bid {bid} ask {ask}"))
    };
    instruments.iter().map(text).collect()
}

fn fact(name: &str, value: &str) -> String {
    format!("{name:NAME_WIDTH$}{value}\n")
}

//! `tickpath feed`: carries market data of an exchange onto a topic, or replays a file of its frames.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tickpath_clock::Wait;
use tickpath_exchanges::{
    FeedChoices, FeedEndpoints, FeedExchange, FeedFormat, KeySource, SnapshotDepth, number_instruments, read_feed_table,
};
use tickpath_feed::Subscription;
use tickpath_lab_report::duration;
use tickpath_market::replay::ReplaySpeed;
use tickpath_oms_text::moment;
use tickpath_relay::feed::{
    ConnectionTotals, FeedMeter, FeedRelayConfig, FeedTotals, StageDelays, replay_frames, run as carry,
};

use tickpath_cli_terminal::args::{CliUsageError, SendRate, bus_url, rate, seconds};
use tickpath_cli_terminal::log_arguments::OpeningArgs;
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::run_monitor::{RunMonitor, finish};

/// Names of the streams, in their order in [`StreamChoice`].
const STREAMS: [&str; 3] = ["quotes", "trades", "books"];

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Messages are TopOfBook, Trade, BookLevel (a level each, with flags at the ends of an update) and \
                  FeedStatus (connections, gaps, validity of books). A message that the topic does not accept at once \
                  is lost: it is counted, and published as a gap. The file of --raw has a line a frame, 'LOCAL_UTC_NS \
                  JSON', or 'LOCAL_UTC_NS #BASE64' of binary data, and 'LOCAL_UTC_NS #connect' before the frames of a \
                  connection."
)]
pub struct FeedArgs {
    /// The exchange
    #[arg(value_name = "EXCHANGE", value_enum)]
    pub exchange: FeedExchange,
    /// Names of instruments, as the exchange writes them; may be repeated. Without --table their numbers are 0, 1, 2, …
    /// in this order, and prices and quantities have 8 decimals
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',', required_unless_present = "table")]
    pub instruments: Vec<String>,
    /// Table of instruments with their numbers and decimals, as `tickpath instruments fetch` writes it; without
    /// --instruments all of the exchange that are not restricted
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Venue of the exchange in the table; default: OKX, BINANCE or BINANCE-FUTURES
    #[arg(long, value_name = "NAME", requires = "table")]
    pub venue: Option<String>,
    /// Messages to carry: some of quotes, trades and books, with commas between
    #[arg(long, value_name = "LIST", default_value = "quotes,trades", value_parser = streams)]
    pub streams: StreamChoice,
    /// URL of the bus to publish on, and name of the topic: shm://, file:///FOLDER, redis://HOST:PORT[?streams],
    /// nats://HOST:PORT[?jetstream], amqp://HOST:PORT, kafka://HOST:PORT; or the place of the URL, env:NAME or @FILE
    #[arg(long, num_args = 2, value_names = ["URL", "TOPIC"], required = true)]
    pub to: Vec<String>,
    /// Number of connections, 1 or 2: with two, each message is taken from the connection that brings it first, and the
    /// loss of one connection loses nothing
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    #[arg(conflicts_with = "replay")]
    pub connections: u8,
    /// Write all frames as they arrive to a new file; gzip if its name ends in .gz. A second connection, and one that
    /// takes over from another, has a file of its own, FILE.1, or ticks.1.gz beside ticks.gz
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub raw: Option<PathBuf>,
    /// Read the frames of a file of --raw, instead of connecting to the exchange
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Speed of --replay as a multiple of the recorded times; max: as fast as possible
    #[arg(long, value_name = "X|max", default_value = "1", value_parser = rate, requires = "replay")]
    pub speed: SendRate,
    /// Address of the exchange's streams, instead of the exchange's own
    #[arg(long, value_name = "URL", conflicts_with = "replay")]
    pub url: Option<String>,
    /// Address of the exchange's REST interface, instead of the exchange's own
    #[arg(long, value_name = "URL", conflicts_with = "replay")]
    pub rest_url: Option<String>,
    /// File of the only trusted certificate authorities; default: those of the system
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub ca: Option<PathBuf>,
    /// Format of the exchange's messages; --replay reads both
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, conflicts_with = "replay")]
    pub format: FeedFormat,
    /// API key for --format sbe: TOML file with key, which only its owner may use (mode 0600), or env:NAME for a
    /// variable of the environment
    #[arg(long, value_name = "FILE|env:NAME", conflicts_with = "replay")]
    pub key: Option<KeySource>,
    /// Levels of a book's snapshot on each side, at binance and binance-futures: 100, 500, 1000 or 5000 (spot alone);
    /// default: 1000. A book is complete to this depth only. The exchange allows 6,000 units a minute of an address
    /// (futures: 2,400), of which the snapshots use half; one costs 5, 25, 50 or 250 (futures: 5, 10 or 20)
    #[arg(long, value_name = "N", conflicts_with = "replay")]
    pub snapshot_depth: Option<SnapshotDepth>,
    /// Time without market data on any connection after which a silence is reported, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub silence: f64,
    /// End after this many messages, or a few more: an update of a book is published whole
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Wait strategy for frames, and for the times of --replay
    #[arg(long, value_name = "busy|yield|block|adaptive", default_value = "block")]
    pub wait: Wait,
    #[command(flatten)]
    pub opening: OpeningArgs,
}

/// The kinds of messages to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamChoice {
    pub quotes: bool,
    pub trades: bool,
    pub books: bool,
}

pub fn run(args: &FeedArgs) -> anyhow::Result<CliOutcome> {
    let subscription = subscription(args)?;
    let config = relay_config(args);
    let meter = Arc::new(FeedMeter::default());
    let shown = meter.clone();
    let begin = || RunMonitor::begin(move || format!("carrying: {}", shown.totals()));
    let ended = match &args.replay {
        Some(file) => {
            let mut parser = args.exchange.parser(&subscription).map_err(CliUsageError::from)?;
            let pace = args.speed.per_second().map(ReplaySpeed::Scaled);
            let watch = begin()?;
            watch.run(&[], |outside| replay_frames(&config, file, pace, &mut *parser, &meter, outside))?
        }
        None => {
            let endpoints =
                FeedEndpoints { url: args.url.as_deref(), rest_url: args.rest_url.as_deref(), ca: args.ca.as_deref() };
            let FeedArgs { format, key, snapshot_depth, .. } = args.clone();
            let choices = FeedChoices { format, key, snapshot_depth, keeps_frames: args.raw.is_some() };
            // One more is spare.
            let connections = usize::from(args.connections) + 1;
            let feeds = args.exchange.open_feeds(&endpoints, &choices, &subscription, connections);
            let feeds = feeds.map_err(CliUsageError::from)?;
            let watch = begin()?;
            watch.run(&[], |outside| carry(&config, feeds, &meter, outside))?
        }
    };
    let totals = meter.totals();
    finish(ended, totals.messages > 0, &summary(&totals))?;
    Ok(if totals.lost + totals.raw_missing > 0 { CliOutcome::Lost } else { CliOutcome::Success })
}

fn subscription(args: &FeedArgs) -> Result<Subscription, CliUsageError> {
    let venue = args.venue.clone().unwrap_or_else(|| args.exchange.venue());
    let instruments = match &args.table {
        Some(file) => read_feed_table(file, &venue, &args.instruments)?,
        None => number_instruments(&args.instruments)?,
    };
    let StreamChoice { quotes, trades, books } = args.streams;
    Ok(Subscription { instruments, quotes, trades, books })
}

fn relay_config(args: &FeedArgs) -> FeedRelayConfig {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let (url, topic) = (&args.to[0], &args.to[1]);
    FeedRelayConfig {
        url: bus_url(url).unwrap_or_else(|never| match never {}),
        topic: topic.clone(),
        target: args.opening.opening(),
        wait: args.wait,
        silence_ns: ns(args.silence),
        raw: args.raw.clone(),
        count: args.count,
        duration_ns: args.duration.map(ns),
    }
}

/// Returns the report at the end: messages, the delay of each stage, and each connection.
fn summary(totals: &FeedTotals) -> String {
    let span = totals.span_utc_ns.map(|(first, last)| format!(", from {} to {}", moment(first), moment(last)));
    let mut text = format!("carried: {totals}{}\n", span.unwrap_or_default());
    let stages = [
        ("wire to read", &totals.wire_to_read, String::new()),
        ("read to parsed", &totals.read_to_parsed, String::new()),
        ("parsed to published", &totals.parsed_to_published, String::new()),
        ("exchange's time to arrival", &totals.event_to_arrival, clock_note(totals)),
    ];
    for (name, delays, note) in stages.iter().filter(|(_, delays, _)| delays.count() > 0) {
        text += &format!("{name}: {}{note}\n", delays_text(delays));
    }
    let used = totals.connections.iter().enumerate().filter(|(_, connection)| connection.attempts > 0);
    for (index, connection) in used {
        text += &format!("connection {index}: {}\n", connection_text(connection));
    }
    text
}

fn delays_text(delays: &StageDelays) -> String {
    let text = |ns: Option<u64>| duration(ns.map_or(f64::NAN, |ns| ns as f64));
    let [p50, p99] = [0.5, 0.99].map(|quantile| text(delays.quantile_ns(quantile)));
    format!("p50 {p50}, p99 {p99}, max {}", text(delays.max_ns()))
}

fn clock_note(totals: &FeedTotals) -> String {
    let ahead = match totals.from_the_future {
        0 => String::new(),
        count => format!("; {count} messages have a time after their arrival, and count as zero"),
    };
    format!(" (by two clocks, with their offset in it{ahead})")
}

fn connection_text(connection: &ConnectionTotals) -> String {
    let ConnectionTotals { frames, bad_frames, messages, won, alone, .. } = connection;
    let offset = connection.clock_offset_ns.map(|(offset_ns, round_trip_ns)| {
        let sign = if offset_ns < 0 { "-" } else { "+" };
        let (offset, error) = (duration(offset_ns.unsigned_abs() as f64), duration(round_trip_ns as f64 / 2.0));
        format!(", exchange's clock {sign}{offset} ± {error}")
    });
    format!(
        "{} reconnects, {frames} frames, {bad_frames} bad, {messages} messages, {won} first, {alone} alone{}",
        connection.reconnects(),
        offset.unwrap_or_default()
    )
}

/// Parses the kinds of messages to carry.
fn streams(text: &str) -> Result<StreamChoice, String> {
    let names: Vec<&str> = text.split(',').collect();
    if names.iter().any(|name| !STREAMS.contains(name)) {
        return Err(format!("use some of {}, with commas between", STREAMS.join(", ")));
    }
    let [quotes, trades, books] = STREAMS.map(|name| names.contains(&name));
    Ok(StreamChoice { quotes, trades, books })
}

//! `tickpath log replay`: publishes a recording on a bus.

use std::sync::Arc;

use clap::Args;
use tickpath_clock::Wait;
use tickpath_market::replay::ReplaySpeed;
use tickpath_relay::replay::{Settings, run as replay};
use tickpath_relay::{RelayMeter, RelayTotals};

use tickpath_cli_terminal::args::{SendRate, bus_url, positive, rate};
use tickpath_cli_terminal::log_arguments::{OpeningArgs, parse_existing};
use tickpath_cli_terminal::run_monitor::{RunMonitor, delays, finish};

#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// Folder of the recording, or of any log with the policy keep, as file:///FOLDER or a path
    #[arg(value_name = "FOLDER")]
    pub recording: String,
    /// URL of the bus: shm://, file:///FOLDER, redis://HOST:PORT[?streams], nats://HOST:PORT[?jetstream],
    /// amqp://HOST:PORT, kafka://HOST:PORT; or the place of the URL, env:NAME or @FILE
    #[arg(value_parser = bus_url)]
    pub url: String,
    /// Name of the topic
    pub topic: String,
    /// Speed as a multiple of the recording's own times; max: as fast as possible
    #[arg(long, value_name = "X|max", default_value = "1", value_parser = rate, conflicts_with = "rate")]
    pub speed: SendRate,
    /// Steady rate in messages a second, instead of the recording's own times
    #[arg(long, value_name = "R", value_parser = positive)]
    pub rate: Option<f64>,
    /// Begin with this sequence number of the recording
    #[arg(long, value_name = "SEQ")]
    pub start: Option<u64>,
    /// End after this many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Begin again when the recording ends
    #[arg(long = "loop")]
    pub looped: bool,
    /// Keep the recorded stamps; default: the intended times of this replay
    #[arg(long)]
    pub keep_stamps: bool,
    /// Wait strategy for intended times, and for room in a full topic
    #[arg(long, value_name = "busy|yield|block|adaptive", default_value = "block")]
    pub wait: Wait,
    #[command(flatten)]
    pub opening: OpeningArgs,
}

pub fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let settings = Settings {
        recording: parse_existing(&args.recording)?,
        url: args.url.clone(),
        topic: args.topic.clone(),
        target: args.opening.opening(),
        pace: pace(args),
        start: args.start,
        count: args.count,
        looped: args.looped,
        keep_stamps: args.keep_stamps,
        wait: args.wait,
    };
    let meter = Arc::new(RelayMeter::default());
    let shown = meter.clone();
    let watch = RunMonitor::begin(move || format!("replaying: {}", replayed(&shown.totals())))?;
    let ended = watch.run(&[], |outside| replay(&settings, &meter, outside))?;
    drop(watch);
    let totals = meter.totals();
    finish(ended, totals.messages > 0, &format!("replayed: {}\n", replayed(&totals)))
}

fn pace(args: &ReplayArgs) -> Option<ReplaySpeed> {
    match args.rate {
        Some(per_second) => Some(ReplaySpeed::Fixed { per_second }),
        None => args.speed.per_second().map(ReplaySpeed::Scaled),
    }
}

fn replayed(totals: &RelayTotals) -> String {
    let RelayTotals { refused, unpublished: left, .. } = totals;
    let late = delays("lateness", totals);
    format!("{totals} in the recording, {refused} refused at first, {left} not published, {late}")
}

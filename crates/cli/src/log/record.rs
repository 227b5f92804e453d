//! `tickpath log record`: writes a topic of a bus to a recording.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tickpath_bus::StartPosition;
use tickpath_bus::wire::FIRST_KIND;
use tickpath_clock::Wait;
use tickpath_relay::record::{Settings, run as record};
use tickpath_relay::{FOREIGN_KIND, RelayMeter};

use tickpath_cli_terminal::args::{bus_url, seconds};
use tickpath_cli_terminal::log_arguments::{FOREIGN_MESSAGES, folder, parse_target, start};
use tickpath_cli_terminal::run_monitor::{RunMonitor, finish, span};

#[derive(Debug, Clone, Args)]
#[command(after_help = FOREIGN_MESSAGES)]
pub struct RecordArgs {
    /// URL of the bus: shm://, file:///FOLDER, redis://HOST:PORT[?streams], nats://HOST:PORT[?jetstream],
    /// amqp://HOST:PORT, kafka://HOST:PORT; or the place of the URL, env:NAME or @FILE
    #[arg(value_parser = bus_url)]
    pub url: String,
    /// Name of the topic
    pub topic: String,
    /// Folder of the recording, as file:///FOLDER or a path; it must not have a recording yet
    #[arg(value_name = "FOLDER")]
    pub recording: String,
    /// End after this many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Begin with the next message, the oldest available message, or a sequence number
    #[arg(long, value_name = "now|oldest|SEQ", default_value = "now", value_parser = start)]
    pub start: StartPosition,
    /// Save the position in the topic in this folder, and resume there when called again with --append, regardless of
    /// --start: no message is skipped or recorded twice, even after a crash
    #[arg(long, value_name = "FOLDER", value_parser = folder)]
    pub resume: Option<PathBuf>,
    /// Kind for messages of other programs, which have neither kind nor stamp: 16 to 255
    #[arg(long, value_name = "KIND", default_value_t = FOREIGN_KIND, value_parser = clap::value_parser!(u8).range(i64::from(FIRST_KIND)..))]
    pub foreign_kind: u8,
    /// Wait strategy for messages
    #[arg(long, value_name = "busy|yield|block|adaptive", default_value = "block")]
    pub wait: Wait,
    /// Append to an existing recording
    #[arg(long)]
    pub append: bool,
}

pub fn run(args: &RecordArgs) -> anyhow::Result<()> {
    let settings = Settings {
        url: args.url.clone(),
        topic: args.topic.clone(),
        start: args.start,
        resume: args.resume.clone(),
        foreign_kind: args.foreign_kind,
        wait: args.wait,
        recording: parse_target(&args.recording)?,
        append: args.append,
        count: args.count,
        duration_ns: args.duration.map(|seconds| (seconds * 1e9) as u64),
    };
    let meter = Arc::new(RelayMeter::default());
    let shown = meter.clone();
    let watch = RunMonitor::begin(move || format!("recording: {}", shown.totals()))?;
    let ended = watch.run(&[(args.url.as_str(), args.topic.as_str())], |outside| record(&settings, &meter, outside))?;
    drop(watch);
    let totals = meter.totals();
    let silence = if totals.messages == 0 { "; no message came, so check that the topic has a writer" } else { "" };
    finish(ended, totals.messages > 0, &format!("recorded: {totals}{}{silence}\n", span(&totals)))
}

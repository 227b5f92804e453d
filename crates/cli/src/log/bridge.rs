//! `tickpath log bridge`: copies topics from one bus to another.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tickpath_bus::StartPosition;
use tickpath_bus::wire::FIRST_KIND;
use tickpath_clock::Wait;
use tickpath_relay::bridge::{Settings, TopicRoute, run as bridge};
use tickpath_relay::{FOREIGN_KIND, RelayMeter, RelayTotals};

use tickpath_cli_terminal::args::bus_url;
use tickpath_cli_terminal::log_arguments::{FOREIGN_MESSAGES, OpeningArgs, folder, start};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::run_monitor::{RunMonitor, delays, finish, span};

#[derive(Debug, Clone, Args)]
#[command(after_help = FOREIGN_MESSAGES)]
pub struct BridgeArgs {
    /// URL of the bus to receive from: shm://, file:///FOLDER, redis://HOST:PORT[?streams],
    /// nats://HOST:PORT[?jetstream], amqp://HOST:PORT, kafka://HOST:PORT; or the place of the URL, env:NAME or @FILE
    #[arg(value_name = "FROM_URL", value_parser = bus_url)]
    pub from: String,
    /// URL of the bus to publish on
    #[arg(value_name = "TO_URL", value_parser = bus_url)]
    pub to: String,
    /// Name of a topic, and its name on the target bus if that differs; may be repeated
    #[arg(long, value_name = "NAME[=NAME2]", required = true, value_parser = route)]
    pub topic: Vec<TopicRoute>,
    /// Begin with the next message, the oldest available message, or a sequence number
    #[arg(long, value_name = "now|oldest|SEQ", default_value = "now", value_parser = start)]
    pub start: StartPosition,
    /// Save the position in each topic in this folder, and resume there when called again, regardless of --start: no
    /// message is skipped or reaches a subscriber twice, even after a crash. Messages that the target broker has lost
    /// since are not published again; for that remove the topic's file in the folder
    #[arg(long, value_name = "FOLDER", value_parser = folder)]
    pub resume: Option<PathBuf>,
    /// Kind for messages of other programs, which have neither kind nor stamp: 16 to 255
    #[arg(long, value_name = "KIND", default_value_t = FOREIGN_KIND, value_parser = clap::value_parser!(u8).range(i64::from(FIRST_KIND)..))]
    pub foreign_kind: u8,
    /// Wait strategy for messages, and for room in a full topic
    #[arg(long, value_name = "busy|yield|block|adaptive", default_value = "block")]
    pub wait: Wait,
    #[command(flatten)]
    pub opening: OpeningArgs,
}

pub fn run(args: &BridgeArgs) -> anyhow::Result<CliOutcome> {
    let settings = Settings {
        from: args.from.clone(),
        to: args.to.clone(),
        routes: args.topic.clone(),
        start: args.start,
        resume: args.resume.clone(),
        foreign_kind: args.foreign_kind,
        wait: args.wait,
        target: args.opening.opening(),
    };
    let meters: Arc<Vec<RelayMeter>> = Arc::new(args.topic.iter().map(|_| RelayMeter::default()).collect());
    let (shown, routes) = (meters.clone(), args.topic.clone());
    let watch = RunMonitor::begin(move || status(&routes, &shown))?;
    let sources: Vec<(&str, &str)> = args.topic.iter().map(|route| (args.from.as_str(), route.from.as_str())).collect();
    let ended = watch.run(&sources, |outside| bridge(&settings, &meters, outside))?;
    drop(watch);
    let all: Vec<RelayTotals> = meters.iter().map(RelayMeter::totals).collect();
    let lines =
        args.topic.iter().zip(&all).map(|(route, totals)| format!("{}{}\n", bridged(route, totals), span(totals)));
    finish(ended, all.iter().any(|totals| totals.messages > 0), &lines.collect::<String>())?;
    Ok(if all.iter().any(|totals| totals.unpublished + totals.too_long > 0) {
        CliOutcome::Lost
    } else {
        CliOutcome::Success
    })
}

fn status(routes: &[TopicRoute], meters: &[RelayMeter]) -> String {
    let lines = routes.iter().zip(meters).map(|(route, meter)| bridged(route, &meter.totals()));
    lines.collect::<Vec<_>>().join("\n")
}

fn bridged(route: &TopicRoute, totals: &RelayTotals) -> String {
    let TopicRoute { from, to } = route;
    let RelayTotals { refused, unpublished: left, too_long, .. } = totals;
    let too_long = if *too_long > 0 { format!("{too_long} dropped as too long, ") } else { String::new() };
    let latency = delays("added latency", totals);
    format!("{from} -> {to}: {totals}, {refused} refused at first, {too_long}{left} not published, {latency}")
}

fn route(text: &str) -> Result<TopicRoute, String> {
    let (from, to) = text.split_once('=').unwrap_or((text, text));
    if from.is_empty() || to.is_empty() {
        return Err("use NAME, or NAME=NAME2 if the topic has another name on the target bus".to_owned());
    }
    Ok(TopicRoute { from: from.to_owned(), to: to.to_owned() })
}

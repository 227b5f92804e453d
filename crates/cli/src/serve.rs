//! `tickpath oms --config FILE`: an OMS as a server, until it is told to stop.

use std::sync::mpsc::sync_channel;

use anyhow::Context;
use sd_notify::NotifyState;
use serde_json::json;
use signal_hook::consts::signal::SIGHUP;
use signal_hook::flag;
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_log::{Config as LogConfig, Place, Policy, Reader, Registration, Start, Writer};
use tickpath_server::settings::{Settings, Shown};
use tickpath_web::Serving;

use crate::copies::Topics;
use crate::lines::Lines;
use crate::outcome::{Outcome, stop_on_signals};

/// Events that may wait to be written; more are counted.
const MOST_WAITING: usize = 4096;
/// How often a topic that somebody is just making is looked at, and the pause between two looks.
const MOST_TRIES: u32 = 100;
const TRY_NS: u64 = 10_000_000;

/// Runs the OMS. The first signal to end stops it in good order, the second ends the process at once; a SIGHUP has it read
/// its files again.
pub fn run(settings: &Settings) -> anyhow::Result<Outcome> {
    let clock = HostClock::get()?;
    let (events, hear) = sync_channel(MOST_WAITING);
    let (config, server) = (settings.config(), settings.server(events));
    let ticks = settings.ticks.as_deref().map(|topic| market(topic, &clock)).transpose()?;
    let stop = stop_on_signals().context("cannot listen for signals")?;
    flag::register(SIGHUP, server.reload.clone()).context("cannot listen for signals")?;
    let lines = Lines { oms: settings.name.clone(), form: settings.shown.log };
    for doubt in settings.doubts() {
        lines.say("doubt", &[], &doubt);
    }
    let shown = show(settings, &lines)?;
    let copies = Topics::start(settings, &lines, &clock)?;
    let writer = lines.clone();
    let written = std::thread::Builder::new().name("oms-lines".into()).spawn(move || writer.write(&hear))?;
    let ready = || {
        copies.begin();
        lines.say("ready", &[], "ready");
        // Who was not started by systemd has nobody to tell.
        let _ = sd_notify::notify(&[NotifyState::Ready]);
    };
    let ended = tickpath_server::run(clock, &config, &server, ticks, &stop, ready);
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    drop(shown);
    drop(copies);
    // The last sender goes with it, and the lines end.
    drop(server);
    let _ = written.join();
    ended?;
    lines.say("stopped", &[], "stopped in good order");
    Ok(Outcome::Good)
}

/// Metrics and page, where the settings ask for them.
fn show(settings: &Settings, lines: &Lines) -> anyhow::Result<Option<Serving>> {
    let Shown { metrics, web, .. } = settings.shown;
    if metrics.is_none() && web.is_none() {
        return Ok(None);
    }
    let unix = settings.listen.unix.as_ref().map(|path| format!("unix://{}", path.display()));
    let oms = unix.or_else(|| settings.listen.tcp.map(|address| format!("tcp://{address}")));
    let serving = tickpath_web::serve(&tickpath_web::Config {
        metrics,
        web,
        names: crate::top::names(settings, &settings.users),
        journal: Place::folder(&settings.journal),
        oms: oms.unwrap_or_default(),
        cpu: settings.core.other_cpu,
    })?;
    let metrics = serving.metrics().map(|at| ("metrics", format!("http://{at}/metrics")));
    let page = serving.web().map(|at| ("page", format!("http://{at}/")));
    for (what, place) in metrics.into_iter().chain(page) {
        lines.say(what, &[("place", json!(place))], &format!("{what} at {place}"));
    }
    Ok(Some(serving))
}

/// A reader of reference prices. The topic is made if nobody has: who publishes takes it up.
fn market(topic: &str, clock: &HostClock) -> anyhow::Result<Reader> {
    let place = Place::shared_memory(topic)?;
    let mut tries = 0;
    loop {
        if !place.exists() {
            // Who makes it at the same moment is as good.
            drop(Writer::open(&LogConfig::topic(place.clone(), Policy::Overwrite), clock.calibration()));
        }
        match Reader::open(&place, Start::Oldest, Registration::Registered) {
            Ok(reader) => return Ok(reader),
            Err(e) if tries == MOST_TRIES => return Err(e.into()),
            Err(_) => sleep_ns(TRY_NS),
        }
        tries += 1;
    }
}

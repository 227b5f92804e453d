//! `tickpath oms --config FILE`: an OMS as a server, until it is told to stop.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::Context;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tickpath_clock::{Clock, HostClock, sleep_ns, utc_ns};
use tickpath_lab::result::rfc3339;
use tickpath_log::{Config as LogConfig, Place, Policy, Reader, Registration, Start, Writer};
use tickpath_server::ServerEvent;
use tickpath_server::settings::{Settings, Shown};
use tickpath_web::Serving;

use crate::Outcome;

/// The exit code of an OMS that was told to stop a second time before it had.
const CUT_SHORT: i32 = 1;
/// Events that may wait to be written; more are counted.
const MOST_WAITING: usize = 4096;
/// How often a topic that somebody is just making is looked at, and the pause between two looks.
const MOST_TRIES: u32 = 100;
const TRY_NS: u64 = 10_000_000;
/// Lines of one second; what is more of them is one line.
const MOST_LINES: u32 = 50;

/// Runs the OMS. The first signal to end stops it in good order, the second ends the process at once; a SIGHUP has it read
/// its files again.
pub fn run(settings: &Settings) -> anyhow::Result<Outcome> {
    let clock = HostClock::get()?;
    let (events, hear) = sync_channel(MOST_WAITING);
    let (config, server) = (settings.config(), settings.server(events));
    let ticks = settings.ticks.as_deref().map(|topic| market(topic, &clock)).transpose()?;
    let stop = stop_flag().context("cannot listen for signals")?;
    flag::register(SIGHUP, server.reload.clone()).context("cannot listen for signals")?;
    let shown = show(settings)?;
    let name = settings.name.clone();
    let lines = std::thread::Builder::new().name("oms-lines".into()).spawn(move || write(&name, &hear))?;
    let ready = || line(&settings.name, &"ready");
    let ended = tickpath_server::run(clock, &config, &server, ticks, &stop, ready);
    drop(shown);
    // The last sender goes with it, and the lines end.
    drop(server);
    let _ = lines.join();
    ended?;
    line(&settings.name, &"stopped in good order");
    Ok(Outcome::Good)
}

/// Metrics and page, where the settings ask for them.
fn show(settings: &Settings) -> anyhow::Result<Option<Serving>> {
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
    for (what, address) in [
        ("metrics at", serving.metrics().map(|at| format!("http://{at}/metrics"))),
        ("page at", serving.web().map(|at| format!("http://{at}/"))),
    ] {
        if let Some(address) = address {
            line(&settings.name, &format!("{what} {address}"));
        }
    }
    Ok(Some(serving))
}

fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, CUT_SHORT, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
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

/// Writes a line for each event, and never a flood.
fn write(name: &str, events: &Receiver<ServerEvent>) {
    let (mut second, mut lines, mut more) = (0, 0, 0_u64);
    for event in events {
        let now = utc_ns() / 1_000_000_000;
        if now != second {
            if more > 0 {
                line(name, &format!("and {more} more events in that second"));
            }
            (second, lines, more) = (now, 0, 0);
        }
        // What an operator must hear goes through whatever else there is.
        match event {
            ServerEvent::Notice(_) => line(name, &event),
            _ if lines == MOST_LINES => more += 1,
            _ => {
                lines += 1;
                line(name, &event);
            }
        }
    }
}

fn line(name: &str, what: &dyn std::fmt::Display) {
    // Whoever closed our standard error does not want to know.
    let _ = writeln!(std::io::stderr(), "{} oms {name}: {what}", rfc3339(utc_ns()));
}

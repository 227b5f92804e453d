//! The process of a client beside the measured clients, which makes a day of its own and requests it again.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_market::{ClientOrderId, NewOrder, Request};
use tickpath_oms_client::{Client, Since};

use super::login::{BenchLogin, REPORT_TIMEOUT_NS, log_in, receive_reports, replayed_reports};
use super::settings::{Settings, SideClient};
use crate::trade::{OrderSpec, SIDE_USER};
use tickpath_lab_harness::{LabError, Parent, ProcessRole};

const SIDE_GROUP: u64 = 70;

/// Pause between two reads of a slow client, and between two polls of an idle one.
const SLOW_NS: u64 = 20_000_000;
const IDLE_NS: u64 = 100_000_000;

/// Time after which a client that never reads reconnects: by then the OMS has closed its session, because the client
/// sends nothing either.
const STUCK_RECONNECT_NS: u64 = 9_000_000_000;

/// The role of a client beside; see [`SideClient`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SideClientRole {
    kind: SideClient,
    login: BenchLogin,
    order: OrderSpec,
    /// The number of orders in its day.
    orders: u64,
    cpu: usize,
}

impl ProcessRole for SideClientRole {
    const NAME: &'static str = "client beside";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        tickpath_clock::pin_to_cpu(self.cpu)?;
        make_day(&clock, self)?;
        // The lowest priority: it runs only when the measured client leaves its CPU.
        rustix::process::nice(19).map_err(|e| LabError::Failed(format!("cannot be nice: {e}")))?;
        let stop = parent.stop_flag();
        parent.ready();
        let mut received = 0;
        while !stop.load(Ordering::Relaxed) {
            let since = if self.kind == SideClient::Idle { Since::Now } else { Since::Start };
            let mut client = log_in(&self.login, since)?;
            match self.kind {
                SideClient::Idle => read_reports(&clock, &mut client, &stop, Some(IDLE_NS), u64::MAX, &mut received)?,
                SideClient::Stuck => wait(&clock, &stop, STUCK_RECONNECT_NS),
                SideClient::Slow | SideClient::Day => {
                    let (pause_ns, day) =
                        ((self.kind == SideClient::Slow).then_some(SLOW_NS), replayed_reports(&client));
                    read_reports(&clock, &mut client, &stop, pause_ns, day, &mut received)?;
                }
            }
            client.close();
        }
        // Counts only the reports received after its day was made.
        parent.result(&received);
        Ok(())
    }
}

impl SideClientRole {
    pub(super) fn new(kind: SideClient, login: &BenchLogin, settings: &Settings) -> Self {
        let login = BenchLogin { user: SIDE_USER.to_owned(), ..login.clone() };
        let cpu = settings.venue_cpu.unwrap_or(settings.cpus[0]);
        Self { kind, login, order: settings.order.clone(), orders: settings.day, cpu }
    }
}

fn make_day(clock: &HostClock, role: &SideClientRole) -> Result<(), LabError> {
    let order = role.order.order().map_err(LabError::Setting)?;
    let mut client = log_in(&role.login, Since::Now)?;
    let (mut next, mut received, mut last) = (0, 0, clock.ticks());
    let orders = role.orders;
    // Each order has a report from the OMS and a report from the venue.
    while received < 2 * orders {
        while next < orders {
            let id = ClientOrderId(SIDE_GROUP << 32 | next);
            if client.enqueue(&Request::New(NewOrder { client_order_id: id, ..order }), clock.ticks()).is_err() {
                break;
            }
            next += 1;
        }
        let more = receive_reports(&mut client)?;
        if more > 0 {
            (received, last) = (received + more, clock.ticks());
        } else if clock.ns_between(last, clock.ticks()) > REPORT_TIMEOUT_NS {
            return Err(LabError::Failed(format!("only {received} of {} reports arrived", 2 * orders)));
        } else {
            client.wait(1_000_000);
        }
    }
    client.close();
    Ok(())
}

/// Reads `count` reports, with a pause between two reads if `pause_ns` is given.
fn read_reports(
    clock: &HostClock,
    client: &mut Client,
    stop: &AtomicBool,
    pause_ns: Option<u64>,
    count: u64,
    received: &mut u64,
) -> Result<(), LabError> {
    let upto = received.saturating_add(count);
    while !stop.load(Ordering::Relaxed) && *received < upto {
        *received += receive_reports(client)?;
        match pause_ns {
            Some(ns) => wait(clock, stop, ns),
            None => client.wait(10_000_000),
        }
    }
    Ok(())
}

/// Waits `ns`, or until the stop flag is set.
fn wait(clock: &HostClock, stop: &AtomicBool, ns: u64) {
    let from = clock.ticks();
    while !stop.load(Ordering::Relaxed) && clock.ns_between(from, clock.ticks()) < ns as i64 {
        sleep_ns(ns.min(IDLE_NS));
    }
}

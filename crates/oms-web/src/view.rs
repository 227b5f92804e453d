//! The view of a running OMS for a page or a terminal, as a frame.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use serde::Serialize;
use tickpath_market::{AccountId, Price, SymbolId};
use tickpath_oms_core::{Core, KILL_ACCOUNT, KILL_ALL, KILL_DISK, KILL_SESSION, KILL_SYMBOL, OrderView, scope_name};
use tickpath_oms_runtime::meter::{HOPS, HopHistogram, MeterReading};
use tickpath_oms_text::{code_name, order_id, symbol_name, trigger};

use crate::journal_follower::JournalFollower;
use crate::metrics::denial;
use crate::rights::Rights;

/// Max open orders in a frame, the newest; the others are counted.
pub const MAX_ORDERS: usize = 500;
/// Max positions in a frame.
pub const MAX_POSITIONS: usize = 500;
/// Interval between two frames.
pub const FRAME_NS: u64 = 500_000_000;
/// The frames of the recent period: ten seconds.
const RECENT_FRAMES: usize = 20;
const FRAMES_PER_SECOND: usize = 2;

/// Display names.
#[derive(Debug, Clone, Default)]
pub struct DisplayNames {
    /// The OMS's name, which its lanes and counters use.
    pub oms: String,
    /// Instruments by their numbers.
    pub symbols: BTreeMap<u32, String>,
    /// Venues by their numbers.
    pub venues: BTreeMap<u16, String>,
    /// Users by their sessions.
    pub users: BTreeMap<u16, String>,
}

/// A frame of the view.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "most fields are lists of the rows below")]
pub struct OmsView {
    pub oms: String,
    /// `running`, or `not running`.
    pub state: &'static str,
    pub pid: Option<u32>,
    /// Identifies this start of the OMS.
    pub epoch: u64,
    /// Alarms, a sentence each, the worst first.
    pub alarms: Vec<String>,
    pub levels: BTreeMap<String, u64>,
    /// The number of requests in the last second.
    pub requests_per_second: u64,
    pub hops: Vec<HopRow>,
    /// The period of the hops: `the last 10 s`, or `its start` if the OMS had no request in them.
    pub hops_of: &'static str,
    pub denials: Vec<(String, u64)>,
    /// The number of the first record that is not in this frame.
    pub record: u64,
    /// Open orders, the newest first.
    pub orders: Vec<PageOrderRow>,
    /// The number of open orders that are left out.
    pub orders_left_out: usize,
    /// Positions that are not flat, or have working orders.
    pub positions: Vec<PagePositionRow>,
    pub positions_left_out: usize,
    pub sessions: Vec<SessionRow>,
    pub lines: Vec<LineRow>,
    pub kills: Vec<KillRow>,
}

/// An active kill switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "as a request for it has them")]
pub struct KillRow {
    pub scope: &'static str,
    pub target: String,
}

/// A hop: the number of requests, and percentiles in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "percentiles say what they are")]
pub struct HopRow {
    pub hop: &'static str,
    pub count: u64,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p999_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

/// An open order, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of an order, as text")]
pub struct PageOrderRow {
    pub id: String,
    pub client_order_id: String,
    pub session: u16,
    pub account: u32,
    pub symbol: String,
    pub venue: String,
    pub side: String,
    pub quantity: String,
    pub filled: String,
    pub leaves: String,
    pub price: String,
    pub status: String,
    pub when: String,
}

/// A position, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of a position, as text")]
pub struct PagePositionRow {
    pub account: u32,
    pub symbol: String,
    pub net: String,
    pub working_buy: String,
    pub working_sell: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of a session")]
pub struct SessionRow {
    pub session: u16,
    pub user: String,
    pub state: &'static str,
    pub open_orders: u64,
    pub requests: u64,
    pub denied: u64,
}

/// A line to a venue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields of a line")]
pub struct LineRow {
    pub venue: String,
    pub state: &'static str,
    pub waiting: u64,
    pub open_orders: u64,
}

/// The last readings, for the recent period.
#[derive(Debug, Default)]
pub struct RecentReadings {
    readings: VecDeque<MeterReading>,
}

impl RecentReadings {
    /// Adds the reading of this frame; readings of an earlier start are dropped.
    pub fn add(&mut self, reading: MeterReading) {
        if self.readings.back().is_some_and(|last| last.epoch != reading.epoch) {
            self.readings.clear();
        }
        if self.readings.len() > RECENT_FRAMES {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
    }

    fn per_second(&self) -> u64 {
        let mut newest = self.readings.iter().rev().map(MeterReading::requests);
        newest.next().zip(newest.nth(FRAMES_PER_SECOND - 1)).map_or(0, |(now, before)| now.saturating_sub(before))
    }

    fn hops(&self) -> (Vec<HopRow>, &'static str) {
        let (Some(first), Some(last)) = (self.readings.front(), self.readings.back()) else {
            return Default::default();
        };
        let new: Vec<HopHistogram> = last.hops.iter().zip(&first.hops).map(|(now, before)| now.since(before)).collect();
        // For a quiet OMS, and in a first frame: the values since the start.
        let is_quiet = new.iter().all(|hop| hop.count() == 0);
        let (hops, of) = if is_quiet { (&last.hops, "its start") } else { (&new, "the last 10 s") };
        let is_new = hops.iter().any(|hop| hop.count() > 0);
        let rows = HOPS.iter().zip(hops).filter(|(_, hop)| !is_new || hop.count() > 0);
        (rows.map(|(name, hop)| HopRow::of(name, hop)).collect(), of)
    }
}

impl HopRow {
    fn of(hop: &'static str, of: &HopHistogram) -> Self {
        let [p50_ns, p90_ns, p99_ns, p999_ns, max_ns] = [0.5, 0.9, 0.99, 0.999, 1.0].map(|share| of.quantile(share));
        Self { hop, count: of.count(), p50_ns, p90_ns, p99_ns, p999_ns, max_ns }
    }
}

impl OmsView {
    /// Makes a frame of the counters and the journal; either may be missing.
    pub fn for_all(names: &DisplayNames, recent: &RecentReadings, follower: Option<&JournalFollower>) -> Self {
        Self::for_rights(&Rights::all(), names, recent, follower)
    }

    /// Makes the frame of a user with these rights: orders and positions of its accounts, its own sessions, and
    /// everything that belongs to no account (counts, latency, lines).
    pub fn for_rights(
        rights: &Rights,
        names: &DisplayNames,
        recent: &RecentReadings,
        follower: Option<&JournalFollower>,
    ) -> Self {
        let reading = recent.readings.back();
        let pid = reading.and_then(|reading| reading.pid);
        let (hops, hops_of) = recent.hops();
        let mut view = Self {
            oms: names.oms.clone(),
            state: if pid.is_some() { "running" } else { "not running" },
            pid,
            hops,
            hops_of,
            requests_per_second: recent.per_second(),
            ..Self::default()
        };
        if let Some(reading) = reading {
            view.epoch = reading.epoch;
            view.levels = reading.gauges.clone();
            view.denials = reading.denials.iter().map(|(code, count)| (denial(*code), *count)).collect();
            view.lines = reading
                .venues
                .iter()
                .map(|line| LineRow {
                    venue: names.venue(line.venue),
                    state: if line.is_up { "up" } else { "down" },
                    waiting: line.waiting,
                    open_orders: 0,
                })
                .collect();
            view.alarms = alarms(reading, &view.lines);
        } else {
            view.alarms.push(format!("no OMS named '{}' runs on this host", names.oms));
        }
        if let Some(follower) = follower {
            view.add_journal(rights, names, follower);
        }
        view
    }

    fn add_journal(&mut self, rights: &Rights, names: &DisplayNames, follower: &JournalFollower) {
        let core = follower.core();
        self.record = follower.sequence();
        let (mut by_session, mut by_venue): (BTreeMap<u16, u64>, BTreeMap<u16, u64>) = Default::default();
        // The newest orders, however many are open.
        let (mut newest, mut open) = (BinaryHeap::with_capacity(MAX_ORDERS + 1), 0);
        for order in core.open_orders().filter(|order| rights.may_see(order.account)) {
            open += 1;
            *by_session.entry(order.session).or_default() += 1;
            *by_venue.entry(order.venue.0).or_default() += 1;
            newest.push(Reverse(order.id));
            if newest.len() > MAX_ORDERS {
                newest.pop();
            }
        }
        for line in &mut self.lines {
            let mut of_line = by_venue.iter().filter(|(venue, _)| names.venue(**venue) == line.venue);
            line.open_orders = of_line.next().map_or(0, |(_, open)| *open);
        }
        self.orders_left_out = open - newest.len();
        let newest = newest.into_sorted_vec();
        self.orders = newest.iter().filter_map(|id| core.order(id.0)).map(|order| names.order(core, &order)).collect();
        self.positions = positions(rights, names, core);
        self.positions_left_out = self.positions.len().saturating_sub(MAX_POSITIONS);
        self.positions.truncate(MAX_POSITIONS);
        let activity = follower.sessions();
        let known = names.users.keys().chain(activity.keys()).chain(by_session.keys()).copied();
        let known: BTreeSet<u16> = known.filter(|session| rights.has_session(*session)).collect();
        let row = |session: u16| {
            let seen = activity.get(&session).copied().unwrap_or_default();
            SessionRow {
                session,
                user: names.users.get(&session).cloned().unwrap_or_default(),
                state: match seen.is_up {
                    Some(true) if self.pid.is_some() => "logged in",
                    Some(_) => "gone",
                    None => "not seen",
                },
                open_orders: by_session.get(&session).copied().unwrap_or(0),
                requests: seen.requests,
                denied: seen.denied,
            }
        };
        self.sessions = known.into_iter().map(row).collect();
        let concerns = |&(scope, target): &(u8, u32)| match scope {
            KILL_ACCOUNT => rights.may_see(AccountId(target)),
            KILL_SESSION => u16::try_from(target).is_ok_and(|session| rights.has_session(session)),
            _ => true,
        };
        let kills = core.kills().filter(concerns);
        self.kills = kills.filter_map(|(scope, target)| names.kill(core, scope, target)).collect();
        for KillRow { scope, target } in &self.kills {
            let whose = if target.is_empty() { format!("the {scope}") } else { format!("{scope} {target}") };
            self.alarms.push(format!("trading is stopped for {whose}: only cancels pass"));
        }
    }
}

fn alarms(reading: &MeterReading, lines: &[LineRow]) -> Vec<String> {
    let mut alarms = Vec::new();
    if reading.pid.is_none() {
        alarms.push("the OMS does not run: these are its last figures".to_owned());
    }
    if reading.gauge("disk_failed") > 0 {
        alarms.push("the journal's disk has failed: new orders are denied, nothing more is durable".to_owned());
    }
    if let unknown @ 1.. = reading.gauge("unknown") {
        alarms.push(format!("{unknown} orders are unknown: their venue was asked for them"));
    }
    for line in lines.iter().filter(|line| line.state == "down") {
        alarms.push(format!("venue {} accepts no requests; {} wait for it", line.venue, line.waiting));
    }
    for (level, what) in [
        ("strangers", "reports were of unknown orders"),
        ("mismatched", "reports did not match the terms of their order"),
        ("contradictions", "reports contradicted earlier ones"),
        ("malformed", "reports were impossible"),
    ] {
        if let count @ 1.. = reading.gauge(level) {
            alarms.push(format!("{count} {what}"));
        }
    }
    alarms
}

impl DisplayNames {
    /// Returns the name of a symbol from the journal, because the table of names may be newer than the OMS's.
    fn symbol(&self, core: &Core, symbol: u32) -> String {
        let listed = || self.symbols.get(&symbol).cloned();
        symbol_name(core, SymbolId(symbol)).or_else(listed).unwrap_or_else(|| symbol.to_string())
    }

    fn venue(&self, venue: u16) -> String {
        self.venues.get(&venue).cloned().unwrap_or_else(|| venue.to_string())
    }

    /// Returns a switch's row; `None` for the disk's own switch, which has its own alarm.
    fn kill(&self, core: &Core, scope: u8, target: u32) -> Option<KillRow> {
        let target = match scope {
            KILL_ALL => String::new(),
            KILL_SYMBOL => self.symbol(core, target),
            KILL_DISK => return None,
            _ => target.to_string(),
        };
        Some(KillRow { scope: scope_name(scope)?, target })
    }

    fn order(&self, core: &Core, order: &OrderView) -> PageOrderRow {
        let armed = core.armed_order(order.id);
        let when = armed.map(|armed| trigger::text(&armed.trigger, |symbol| self.symbol(core, symbol.0)));
        PageOrderRow {
            id: order_id(order.id),
            client_order_id: order.client_order_id.0.to_string(),
            session: order.session,
            account: order.account.0,
            symbol: self.symbol(core, order.symbol.0),
            venue: self.venue(order.venue.0),
            side: code_name(order.side),
            quantity: order.quantity.to_string(),
            filled: order.cumulative.to_string(),
            leaves: order.leaves.to_string(),
            price: order.price.to_string(),
            status: code_name(order.status).replace('_', " "),
            when: when.unwrap_or_default(),
        }
    }
}

fn positions(rights: &Rights, names: &DisplayNames, core: &Core) -> Vec<PagePositionRow> {
    let mut open: Vec<_> = core
        .positions()
        .filter(|(account, ..)| rights.may_see(*account))
        .filter(|(_, _, view)| view.net != 0 || view.working_buy != 0 || view.working_sell != 0)
        .collect();
    open.sort_unstable_by_key(|(account, symbol, _)| (*account, *symbol));
    let row = |(account, symbol, view): (AccountId, SymbolId, _)| {
        let tickpath_oms_core::PositionView { net, working_buy, working_sell } = view;
        PagePositionRow {
            account: account.0,
            symbol: names.symbol(core, symbol.0),
            net: units(net),
            working_buy: units(working_buy),
            working_sell: units(working_sell),
        }
    };
    open.into_iter().map(row).collect()
}

fn units(number: i128) -> String {
    i64::try_from(number).map_or_else(|_| format!("{number}e-8"), |units| Price(units).to_string())
}

/// Formats nanoseconds with three digits.
pub fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

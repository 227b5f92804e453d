//! The world: host, clients, operator, lines, and the observing oracle. One thread, one plan.

use tickpath_clock::Clock;
use tickpath_market::{NewOrder, OrderId, Price, Request, Side, SymbolId, Trade, TriggerPriceType};
use tickpath_oms_core::{KILL_ACCOUNT, KILL_ALL, KILL_SYMBOL, KillSwitch, QueryStatus, RecordKind};
use tickpath_oms_runtime::{LaneKind, Notice, OmsError};

use crate::client::{Client, Operator};
use crate::crash_counts::CrashKind;
use crate::host::Host;
use crate::limits;
use crate::line::RemoteVenue;
use crate::lines::{SimLineConfig, SimVenueLines};
use crate::oracle::Oracle;
use crate::plan::{Act, Dice, Step};
use crate::planted_bugs::PlantedBug;
use crate::remote::RemoteSession;
use crate::rule::{BrokenRule, RuleCheck, broken};
use crate::step_context::StepContext;
use crate::tally::Tally;
use crate::trading_config::{SESSIONS, VENUES, accounts_of, top};

pub const SECOND: u64 = 1_000_000_000;

/// All parts of a simulation.
pub struct World {
    pub host: Host,
    pub clients: Vec<Client>,
    pub operator: Operator,
    pub lines: Vec<RemoteVenue>,
    pub oracle: Oracle,
    pub tally: Tally,
    pub plant: Option<PlantedBug>,
    /// Log of events, for a reader of a failing plan.
    pub story: Option<Vec<String>>,
    /// The OMS has not been up since the last power loss.
    pub is_after_power: bool,
    /// Kind of the OMS's last end, until it is up again.
    pub end: Option<CrashKind>,
    /// Ended days in the journal before the one in which the OMS was killed, until it is up again.
    pub days_before: Option<u64>,
}

/// Result of a plan.
pub struct Outcome {
    pub tally: Tally,
    pub story: Vec<String>,
    pub broken: Option<BrokenRule>,
    pub digest: u64,
}

/// Runs a plan from an empty disk to a final rest.
pub fn run(seed: u64, plan: &[Step], plant: Option<PlantedBug>, keeps_story: bool) -> Outcome {
    let mut world = World::new(seed, plant, keeps_story);
    let lived = world.live(plan);
    let digest = world.host.sequencer().map_or(0, |oms| oms.core().digest().digest);
    world.tally.count("seeds");
    let World { tally, story, .. } = world;
    Outcome { tally, story: story.unwrap_or_default(), broken: lived.err(), digest }
}

/// Borrows the observers of the world, apart from one part of it.
macro_rules! around {
    ($world:ident) => {
        &mut StepContext {
            clock: &$world.host.clock,
            oracle: &mut $world.oracle,
            tally: &mut $world.tally,
            plant: $world.plant,
        }
    };
}
pub(crate) use around;

impl World {
    fn new(seed: u64, plant: Option<PlantedBug>, keeps_story: bool) -> Self {
        let mut host = Host::new(seed);
        if plant == Some(PlantedBug::DishonestDisk) {
            host.let_disk_lie();
        }
        let terms = host.terms.as_ref();
        let by = |place| terms.filter(|terms| terms.place == place).map(SimLineConfig::lines);
        let lines =
            (0..).zip(VENUES).map(|(place, venue)| RemoteVenue::new(venue, VENUES.len() as u32, by(place))).collect();
        Self {
            clients: (0..SESSIONS).map(|session| Client::new(session, &host.wires)).collect(),
            host,
            operator: Operator::default(),
            lines,
            oracle: Oracle::default(),
            tally: Tally::default(),
            plant,
            story: keeps_story.then(Vec::new),
            is_after_power: false,
            end: None,
            days_before: None,
        }
    }

    fn live(&mut self, plan: &[Step]) -> RuleCheck {
        self.start(0)?;
        self.join_all()?;
        for (turn, step) in plan.iter().enumerate() {
            self.log_event(|| format!("{turn:3} {:?}", step.act));
            self.act(step.act, &mut Dice::new(step.number))?;
            self.watch()?;
        }
        self.log_event(|| "the end".to_owned());
        self.settle()
    }

    pub fn log_event(&mut self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(what());
        }
    }

    fn act(&mut self, act: Act, dice: &mut Dice) -> RuleCheck {
        if !self.host.is_up() {
            self.clients.iter_mut().filter_map(|client| client.remote.as_mut()).for_each(RemoteSession::cut);
        }
        match act {
            Act::Order | Act::Conditional | Act::Rearm => self.ask(act, dice),
            Act::Cancel | Act::Replace | Act::Status | Act::MassCancel => self.ask(act, dice),
            Act::Burst => self.burst(dice)?,
            Act::Hear => _ = self.receive_reports()?,
            Act::Poll => self.turns(1 + dice.below(4), 0)?,
            Act::Commit => {
                if self.host.commit() {
                    self.tally.count("commits");
                }
            }
            Act::Forward | Act::Take | Act::Deliver | Act::Swap | Act::Double | Act::Disconnect | Act::Amend => {
                self.on_line(act, dice)?;
            }
            Act::Tick => self.tick(dice.below(VENUES.len() as u64) as u32, 97 + dice.below(7) as i64, 0)?,
            Act::Advance => {
                self.fall_silent(dice);
                self.host.clock.advance(dice.below([1_000, SECOND / 10, 3 * SECOND][dice.clone().place(3)]))
            }
            Act::Return => self.come_back(dice)?,
            Act::Switch => self.switch(dice),
            Act::Inquire => self.inquire(dice),
            Act::Rights => self.change_rights(dice)?,
            Act::Limits => {
                self.change_limits(dice)?;
                if dice.one_in(2) {
                    self.renumber(dice)?;
                }
            }
            Act::Settle => self.settle()?,
            Act::DayEnd => self.end_day(dice)?,
            Act::KillOms => self.kill_oms(dice),
            Act::KillInTurn => self.kill_in_turn(dice)?,
            Act::KillInStart => {
                let max = if dice.one_in(2) { 6 } else { 50 };
                self.kill_in_start(1 + dice.below(max))?;
            }
            Act::Stop => self.stop(dice)?,
            Act::KillGateway => self.kill_gateway(dice)?,
            Act::CutLine | Act::KillVenue | Act::LoseLine | Act::FillSockets => self.on_lines(act, dice)?,
            Act::KillClient => {
                let client = dice.place(self.clients.len());
                let client = &mut self.clients[client];
                let had_remote = client.remote.as_mut().is_some_and(RemoteSession::forget);
                if client.lanes.take().is_some() || had_remote {
                    self.tally.count("clients killed");
                }
            }
            Act::FailDisk => {
                if self.host.is_up() {
                    self.tally.count("disks failed");
                    self.host.fail_disk();
                    self.oracle.is_disk_bad(true);
                }
            }
            Act::LosePower => self.lose_power(dice)?,
            Act::CopyLanes => self.host.copy_lanes(),
            Act::StepClock => {
                self.tally.count("clock stepped");
                match dice.one_in(2) {
                    true => self.host.clock.set_back(dice.below(10 * SECOND)),
                    false => self.host.clock.advance(dice.below(600) * SECOND),
                }
            }
        }
        Ok(())
    }

    pub fn ask(&mut self, act: Act, dice: &mut Dice) {
        let client = dice.place(self.clients.len());
        let (request, name) = match act {
            Act::Order => (Some(self.clients[client].order(dice)), "orders sent"),
            Act::Conditional => (Some(self.clients[client].conditional(dice)), "conditional orders sent"),
            Act::Rearm => (self.clients[client].rearm(dice), "other triggers sent"),
            Act::Cancel if dice.one_in(4) => {
                let orders: Vec<u64> = self.oracle.reported.keys().copied().collect();
                (self.clients[client].cancel_of_another(&orders, dice), "cancels by order id sent")
            }
            Act::Cancel => (self.clients[client].cancel(dice), "cancels sent"),
            Act::Replace => (self.clients[client].replace(dice), "replaces sent"),
            Act::Status => (self.clients[client].status(dice), "status requests sent"),
            _ => (Some(self.clients[client].mass_cancel(dice)), "mass cancels sent"),
        };
        let Some(request) = request else { return };
        if self.send(client, &request) {
            self.tally.count(name);
        }
    }

    pub fn send(&mut self, client: usize, request: &Request) -> bool {
        let is_sent = self.clients[client].send(request, around!(self));
        self.log_event(|| format!("      session {client}, sent {is_sent}: {}", brief(request)));
        is_sent
    }

    /// Sends more orders than a venue's lane holds, in as many parts as the client's lane takes.
    fn burst(&mut self, dice: &mut Dice) -> RuleCheck {
        self.tally.count("bursts");
        let client = dice.place(self.clients.len());
        let (symbol, parts) = (SymbolId(dice.below(VENUES.len() as u64) as u32), 1 + dice.below(3));
        for _ in 0..3 {
            for _ in 0..parts * 100 {
                let Request::New(new) = self.clients[client].order(dice) else { continue };
                let order = Request::New(NewOrder { symbol, ..new });
                if !self.clients[client].send(&order, around!(self)) {
                    break;
                }
            }
            self.turns(8, 0)?;
        }
        let is_full = self.host.sequencer().is_some_and(|oms| {
            let core = oms.core();
            VENUES.iter().any(|venue| core.is_up(*venue) && core.waiting(*venue) > 0)
        });
        let by_line = self.lines[symbol.0 as usize].by.is_some();
        self.tally.add(if by_line { "requests that wait for a line" } else { "venues' lanes full" }, is_full.into());
        Ok(())
    }

    fn receive_reports(&mut self) -> Result<usize, BrokenRule> {
        let mut received = 0;
        for client in &mut self.clients {
            received += client.receive(around!(self))?;
        }
        Ok(received)
    }

    /// Runs turns of the OMS, which may be killed in the last one.
    pub fn turns(&mut self, turns: u64, kill_at: u64) -> RuleCheck {
        for turn in 1..=turns {
            let was_up = self.host.is_up();
            let kill_at = if turn == turns { kill_at } else { 0 };
            let polled = self.host.poll(kill_at);
            self.count_notices(polled)?;
            if was_up && !self.host.is_up() {
                self.tally.count("kills in a turn");
                self.ended(CrashKind::InTurn);
                self.log_event(|| format!("      killed at reading {kill_at}"));
            }
        }
        Ok(())
    }

    /// Counts the notices and turns an error of the OMS into a broken rule: the OMS must never give up.
    pub fn count_notices<T>(&mut self, done: Result<T, OmsError>) -> Result<T, BrokenRule> {
        for notice in self.host.new_notices() {
            self.tally.notice(&notice);
            if !matches!(notice, Notice::LaneLost { .. }) {
                self.log_event(|| format!("      notice: {notice}"));
            }
        }
        done.or_else(|e| broken("the OMS keeps running", e.to_string()))
    }

    fn on_line(&mut self, act: Act, dice: &mut Dice) -> RuleCheck {
        let at = dice.place(self.lines.len());
        let max = 1 + dice.place(12);
        if matches!(act, Act::Forward | Act::Deliver) {
            self.report_losses()?;
        }
        if act == Act::Deliver
            && self.plant == Some(PlantedBug::WrongLane)
            && self.host.terms.is_none()
            && let Some(report) = self.lines[at].misroute()
        {
            self.lines[1 - at].deliver_misrouted(report);
        }
        let line = &mut self.lines[at];
        match act {
            Act::Forward => _ = line.forward(max),
            Act::Take => _ = line.take(max, around!(self))?,
            Act::Deliver => _ = line.deliver(max, around!(self)),
            Act::Swap => self.tally.add("reports swapped", line.swap(dice).into()),
            Act::Double => self.tally.add("reports doubled", line.duplicate(dice).into()),
            Act::Disconnect => {
                self.tally.count("connections lost");
                line.cut(dice, around!(self))?;
            }
            _ => {
                let is_done = line.amend(dice, around!(self));
                self.tally.add("fills busted or corrected", is_done.into());
            }
        }
        Ok(())
    }

    /// Applies a fault of lines, if a venue is reached by lines.
    fn on_lines(&mut self, act: Act, dice: &mut Dice) -> RuleCheck {
        let Some(place) = self.host.terms.as_ref().map(|terms| terms.place) else { return Ok(()) };
        // A fault needs requests in flight to have an effect.
        for _ in 0..dice.below(5) {
            self.ask([Act::Order, Act::Order, Act::Cancel, Act::Replace][dice.place(4)], dice);
        }
        self.turns(1, 0)?;
        let line = &mut self.lines[place];
        match act {
            Act::CutLine => line.cut_any_line(dice, around!(self)),
            Act::KillVenue => line.kill_venue(around!(self)),
            Act::LoseLine => line.lose_line(dice, around!(self)),
            _ => {
                self.tally.count("sockets full");
                line.by.iter_mut().for_each(|lines| lines.set_full(true));
                Ok(())
            }
        }
    }

    /// Notifies the OMS of the losses on the gateways' wires.
    pub fn report_losses(&mut self) -> RuleCheck {
        for at in 0..self.lines.len() {
            let RemoteVenue { id, unreported, lanes, .. } = &self.lines[at];
            let (venue, lost) = (*id, *unreported);
            if lost == 0 || lanes.is_none() || !self.host.is_up() {
                continue;
            }
            let noted = self.host.call(0, |oms| oms.note_missed(LaneKind::VenueReports(venue), lost));
            self.count_notices(noted)?;
            self.lines[at].unreported = 0;
        }
        Ok(())
    }

    /// Moves the market with a trade; the OMS may be killed while it reads the tick.
    pub fn tick(&mut self, symbol: u32, middle: i64, kill_at: u64) -> RuleCheck {
        let tick = top(symbol, middle);
        let trade = Trade { price: Price::from_whole(middle), symbol: SymbolId(symbol), ..Trade::default() };
        let stamp = self.host.clock.ticks();
        let was_up = self.host.is_up();
        let outcome = self.host.call(kill_at, |oms| {
            oms.apply_top_of_book(stamp, &tick)?;
            oms.trade(stamp, &trade)
        });
        self.count_notices(outcome)?;
        let prices = [
            (TriggerPriceType::Bid, tick.bid),
            (TriggerPriceType::Ask, tick.ask),
            (TriggerPriceType::Last, trade.price),
        ];
        self.oracle.prices.extend(prices.map(|(price_type, price)| ((symbol, price_type.code()), price)));
        if was_up && !self.host.is_up() {
            self.tally.count("kills at a tick");
            self.ended(CrashKind::InTurn);
        }
        self.lines[symbol as usize].tick(&tick, around!(self));
        Ok(())
    }

    fn come_back(&mut self, dice: &mut Dice) -> RuleCheck {
        if !self.host.is_up() && dice.one_in(2) {
            return self.start(0);
        }
        // A process that comes before the lanes exist comes again.
        match dice.below(if self.host.terms.is_some() { 4 } else { 3 }) {
            3 => self.lines_come_back(dice),
            0 => drop(self.lines[dice.place(VENUES.len())].join(&self.host.config.lanes, &self.host.clock)),
            1 => drop(self.clients[dice.place(SESSIONS.into())].join(&self.host.config.lanes, &self.host.clock)),
            _ => drop(self.operator.join(&self.host.config.lanes, &self.host.clock)),
        }
        Ok(())
    }

    /// Restarts a venue, frees its sockets, or returns a line that seemed lost for good.
    fn lines_come_back(&mut self, dice: &mut Dice) {
        for lines in self.lines.iter_mut().filter_map(|line| line.by.as_mut()) {
            match dice.below(4) {
                0 | 1 => lines.set_down(false),
                2 => lines.set_full(false),
                _ => self.tally.add("lines back after all", lines.come_back() as u64),
            }
        }
    }

    fn switch(&mut self, dice: &mut Dice) {
        let scope = [KILL_ALL, KILL_ACCOUNT, KILL_SYMBOL][dice.place(3)];
        let (on, cancel, target) = (u8::from(dice.one_in(2)), dice.below(2) as u8, dice.below(3) as u32);
        let kill = KillSwitch { scope, on, cancel, target, ..KillSwitch::default() };
        if self.operator.send(&self.host.clock, RecordKind::Kill, &kill) {
            self.tally.count("kill switches turned");
        }
    }

    /// Changes a session's right to trade: a running OMS takes it at once, a stopped one at its start.
    fn change_rights(&mut self, dice: &mut Dice) -> RuleCheck {
        let session = dice.below(SESSIONS.into()) as u16;
        let may_trade = dice.one_in(2);
        let rules = &mut self.host.config.trading.sessions[usize::from(session)];
        rules.accounts = if may_trade { accounts_of(session) } else { Vec::new() };
        let Some((changes, last)) = self.define(dice)? else { return Ok(()) };
        self.tally.add("rights changed", u64::from(changes > 0));
        self.oracle.note_right(session, may_trade, last.0);
        Ok(())
    }

    /// Changes the limits of the trading configuration.
    fn change_limits(&mut self, dice: &mut Dice) -> RuleCheck {
        self.oracle.limits.end();
        self.host.terms.iter().for_each(|terms| terms.set_accounts(&[]));
        limits::draw(&mut self.host.config.trading, dice);
        let Some((changes, last)) = self.define(dice)? else { return Ok(()) };
        self.tally.add("limits changed", u64::from(changes > 0));
        self.oracle.limits.begin(last.0, &self.host.config.trading);
        self.host.terms.iter().for_each(|terms| terms.set_accounts(&self.host.config.trading.accounts));
        Ok(())
    }

    /// Swaps the numbers of the symbols in the desk. A running OMS refuses that while a number is in use, and the desk
    /// reverts; a stopped OMS decides at its start.
    fn renumber(&mut self, dice: &mut Dice) -> RuleCheck {
        self.host.renumber();
        let trading = self.host.config.trading.clone();
        let kill_at = if dice.one_in(3) { 1 + dice.below(4) } else { 0 };
        let was_up = self.host.is_up();
        let defined = self.host.call(kill_at, |oms| oms.replace_definitions(&trading));
        if let Err(OmsError::IdentityConflicts(why)) = &defined {
            self.tally.count("renumbered symbols refused");
            self.log_event(|| format!("      refused: {why}"));
            self.host.renumber();
            return Ok(());
        }
        if self.count_notices(defined)?.is_some() {
            self.tally.count("symbols renumbered");
            self.oracle.note_names(&trading.instruments);
            // The prices were those of other symbols.
            self.oracle.prices.clear();
        }
        if was_up && !self.host.is_up() {
            self.ended(CrashKind::InTurn);
        }
        Ok(())
    }

    /// Loads the desk into a running OMS, which may be killed meanwhile. Returns the number of changes and the id of
    /// the last record, if the OMS was not killed.
    fn define(&mut self, dice: &mut Dice) -> Result<Option<(usize, OrderId)>, BrokenRule> {
        let trading = self.host.config.trading.clone();
        let kill_at = if dice.one_in(3) { 1 + dice.below(4) } else { 0 };
        let was_up = self.host.is_up();
        let defined = self.host.call(kill_at, |oms| {
            let changes = oms.replace_definitions(&trading)?;
            Ok((changes, OrderId::new(oms.core().epoch(), oms.records())))
        });
        let defined = self.count_notices(defined)?;
        if was_up && !self.host.is_up() {
            self.ended(CrashKind::InTurn);
        }
        Ok(defined)
    }

    fn inquire(&mut self, dice: &mut Dice) {
        let orders: Vec<u64> = self.oracle.truths.keys().copied().collect();
        let Some(&order) = orders.get(dice.place(orders.len())) else { return };
        if self.operator.send(
            &self.host.clock,
            RecordKind::QueryStatus,
            &QueryStatus { order, ..QueryStatus::default() },
        ) {
            self.tally.count("operator's questions");
        }
    }

    /// Checks the rules that hold at any time.
    pub fn watch(&mut self) -> RuleCheck {
        self.lines.iter().filter_map(|line| line.by.as_ref()).try_for_each(SimVenueLines::check)?;
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        self.oracle.check_reported(oms.core())?;
        self.oracle.check_exposure(oms.core(), false)
    }
}

/// Describes a request in a few words.
fn brief(request: &Request) -> String {
    let id = request.client_order_id();
    match request {
        Request::New(new) => {
            let side = if new.side == Side::Buy.code() { "buy" } else { "sell" };
            let NewOrder { quantity, price, symbol, order_type, time_in_force, .. } = new;
            format!("order {id}: {side} {quantity} of {symbol} at {price}, type {order_type}, in force {time_in_force}")
        }
        Request::Cancel(cancel) if cancel.order_id.0 != 0 => format!("{id}: cancel order {:x}", cancel.order_id.0),
        Request::Cancel(cancel) => format!("{id}: cancel {}", cancel.original),
        Request::Replace(to) => format!("{id}: replace {} by {} at {}", to.original, to.quantity, to.price),
        Request::Status(status) => format!("{id}: status of {}", status.original),
        Request::MassCancel(_) => format!("{id}: cancel all"),
        Request::Extended(new) => format!("{}, client id {}", brief(&Request::New(new.order)), new.text_id),
        Request::ByTextId(named) => format!("{id}: {:?} of client id {}", named.action, named.text_id),
        Request::Conditional(new) => format!("{}, when {:?}", brief(&Request::New(new.order)), new.trigger),
        Request::ReplaceConditional(to) => {
            format!("{id}: replace {} by {} at {}, when {:?}", to.original, to.quantity, to.price, to.trigger)
        }
    }
}

//! The world: host, clients, operator, lines, and the oracle that looks on. One thread, one plan.

use tickpath_clock::Clock;
use tickpath_market::{Request, VenueId};
use tickpath_oms::{LaneKind, OmsError};
use tickpath_orders::{DayEnd, Inquire, KILL_ACCOUNT, KILL_ALL, KILL_SYMBOL, Kill, RecordKind};

use crate::client::{Client, Operator, is_current};
use crate::disk::Fate;
use crate::host::{Host, SESSIONS, VENUES, top};
use crate::line::{Around, Line};
use crate::oracle::{Broken, Checked, Oracle, broken};
use crate::plan::{Act, Dice, Step};
use crate::plants::{self, Plant};
use crate::tally::Tally;

pub const SECOND: u64 = 1_000_000_000;

/// Everything.
pub struct World {
    pub host: Host,
    pub clients: Vec<Client>,
    pub operator: Operator,
    pub lines: Vec<Line>,
    pub oracle: Oracle,
    pub tally: Tally,
    pub plant: Option<Plant>,
    /// What happened, for whoever reads a failing plan.
    pub story: Option<Vec<String>>,
    /// The OMS was not up since the power was lost.
    is_after_power: bool,
}

/// What came of a plan.
pub struct Outcome {
    pub tally: Tally,
    pub story: Vec<String>,
    pub broken: Option<Broken>,
    pub digest: u64,
}

/// Runs a plan from an empty disk to a last rest.
pub fn run(seed: u64, plan: &[Step], plant: Option<Plant>, is_told: bool) -> Outcome {
    let mut world = World::new(seed, plant, is_told);
    let lived = world.live(plan);
    let digest = world.host.sequencer().map_or(0, |oms| oms.core().digest().digest);
    world.tally.count("seeds");
    let World { tally, story, .. } = world;
    Outcome { tally, story: story.unwrap_or_default(), broken: lived.err(), digest }
}

/// Looks at the whole world but one part of it.
macro_rules! around {
    ($world:ident) => {
        &mut Around {
            clock: &$world.host.clock,
            oracle: &mut $world.oracle,
            tally: &mut $world.tally,
            plant: $world.plant,
        }
    };
}
pub(crate) use around;

impl World {
    fn new(seed: u64, plant: Option<Plant>, is_told: bool) -> Self {
        let mut host = Host::new(seed);
        if plant == Some(Plant::LyingDisk) {
            host.let_disk_lie();
        }
        Self {
            host,
            clients: (0..SESSIONS).map(Client::new).collect(),
            operator: Operator::default(),
            lines: VENUES.into_iter().map(|venue| Line::new(venue, VENUES.len() as u32)).collect(),
            oracle: Oracle::default(),
            tally: Tally::default(),
            plant,
            story: is_told.then(Vec::new),
            is_after_power: false,
        }
    }

    fn live(&mut self, plan: &[Step]) -> Checked {
        self.start(0)?;
        self.join_all()?;
        for (turn, step) in plan.iter().enumerate() {
            self.tell(|| format!("{turn:3} {:?}", step.act));
            self.act(step.act, &mut Dice::new(step.number))?;
            self.watch()?;
        }
        self.tell(|| "the end".to_owned());
        self.settle()
    }

    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(what());
        }
    }

    fn act(&mut self, act: Act, dice: &mut Dice) -> Checked {
        match act {
            Act::Order | Act::Cancel | Act::Replace | Act::Status | Act::MassCancel => self.ask(act, dice),
            Act::Burst => self.burst(dice)?,
            Act::Hear => _ = self.hear()?,
            Act::Poll => self.turns(1 + dice.below(4), 0)?,
            Act::Commit => {
                if self.host.commit() {
                    self.tally.count("commits");
                }
            }
            Act::Forward | Act::Take | Act::Deliver | Act::Swap | Act::Double | Act::Disconnect | Act::Amend => {
                self.on_line(act, dice)?;
            }
            Act::Tick => self.tick(dice.below(VENUES.len() as u64) as u32, 97 + dice.below(7) as i64)?,
            Act::Advance => self.host.clock.advance(dice.below([1_000, SECOND / 10, 3 * SECOND][dice.clone().place(3)])),
            Act::Return => self.come_back(dice)?,
            Act::Switch => self.switch(dice),
            Act::Inquire => self.inquire(dice),
            Act::Settle => self.settle()?,
            Act::DayEnd => self.end_day()?,
            Act::KillOms => self.kill_oms(dice),
            Act::KillInTurn => self.turns(1 + dice.below(3), 1 + dice.below(30))?,
            Act::KillInStart => self.kill_in_start(1 + dice.below(60))?,
            Act::Stop => self.stop(dice)?,
            Act::KillGateway => self.kill_gateway(dice)?,
            Act::KillClient => {
                let client = dice.place(self.clients.len());
                if self.clients[client].lanes.take().is_some() {
                    self.tally.count("clients killed");
                }
            }
            Act::FailDisk => {
                if self.host.is_up() {
                    self.tally.count("disks failed");
                }
                self.host.fail_disk();
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

    fn ask(&mut self, act: Act, dice: &mut Dice) {
        let client = dice.place(self.clients.len());
        let (request, name) = match act {
            Act::Order => (Some(self.clients[client].order(dice)), "orders sent"),
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

    fn send(&mut self, client: usize, request: &Request) -> bool {
        let is_sent = self.clients[client].send(request, around!(self));
        self.tell(|| format!("      session {client}, sent {is_sent}: {request:?}"));
        is_sent
    }

    /// More than a venue's lane holds, in as many parts as the client's lane takes.
    fn burst(&mut self, dice: &mut Dice) -> Checked {
        self.tally.count("bursts");
        let client = dice.place(self.clients.len());
        for _ in 0..4 {
            for _ in 0..80 {
                let request = self.clients[client].order(dice);
                if !self.send(client, &request) {
                    break;
                }
            }
            self.turns(8, 0)?;
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<usize, Broken> {
        let mut heard = 0;
        for client in &mut self.clients {
            heard += client.hear(around!(self))?;
        }
        Ok(heard)
    }

    /// Turns of the OMS; it may be killed in the last one.
    pub fn turns(&mut self, turns: u64, kill_at: u64) -> Checked {
        for turn in 1..=turns {
            let was_up = self.host.is_up();
            let kill_at = if turn == turns { kill_at } else { 0 };
            let polled = self.host.poll(kill_at);
            self.noted(polled)?;
            if was_up && !self.host.is_up() {
                self.tally.count("kills in a turn");
                self.tell(|| format!("      killed at reading {kill_at}"));
            }
        }
        Ok(())
    }

    /// What the OMS must never do is to give up.
    pub fn noted<T>(&mut self, done: Result<T, OmsError>) -> Result<T, Broken> {
        for notice in self.host.news() {
            self.tally.notice(&notice);
            self.tell(|| format!("      notice: {notice}"));
        }
        done.or_else(|e| broken("the OMS goes on", e.to_string()))
    }

    fn on_line(&mut self, act: Act, dice: &mut Dice) -> Checked {
        let at = dice.place(self.lines.len());
        let most = 1 + dice.place(12);
        if matches!(act, Act::Forward | Act::Deliver) {
            self.tell_losses()?;
        }
        if act == Act::Deliver && self.plant == Some(Plant::WrongLane) && let Some(report) = self.lines[at].misroute() {
            self.lines[1 - at].bring(report);
        }
        let line = &mut self.lines[at];
        match act {
            Act::Forward => _ = line.forward(most),
            Act::Take => _ = line.take(most, around!(self))?,
            Act::Deliver => _ = line.deliver(most, around!(self)),
            Act::Swap => self.tally.add("reports swapped", line.swap(dice).into()),
            Act::Double => self.tally.add("reports doubled", line.double(dice).into()),
            Act::Disconnect => {
                self.tally.count("connections lost");
                line.cut(dice, around!(self))?;
            }
            _ => {
                let is_done = line.amend(dice, around!(self));
                self.tally.add("fills taken back or corrected", is_done.into());
            }
        }
        Ok(())
    }

    /// The gateways tell the OMS what was lost on their wires.
    pub fn tell_losses(&mut self) -> Checked {
        for at in 0..self.lines.len() {
            let Line { id, untold, lanes, .. } = &self.lines[at];
            let (venue, lost) = (*id, *untold);
            if lost == 0 || lanes.is_none() || !self.host.is_up() {
                continue;
            }
            let told = self.host.call(0, |oms| oms.missed(LaneKind::VenueReports(venue), lost));
            self.noted(told)?;
            self.lines[at].untold = 0;
        }
        Ok(())
    }

    pub fn tick(&mut self, symbol: u32, middle: i64) -> Checked {
        let tick = top(symbol, middle);
        let stamp = self.host.clock.ticks();
        if let Some(oms) = self.host.sequencer() {
            oms.tick(stamp, &tick);
        }
        self.lines[symbol as usize].tick(&tick, around!(self));
        Ok(())
    }

    fn come_back(&mut self, dice: &mut Dice) -> Checked {
        if !self.host.is_up() && dice.one_in(2) {
            return self.start(0);
        }
        // Who comes before the lanes are there comes again.
        match dice.below(3) {
            0 => drop(self.lines[dice.place(VENUES.len())].join(&self.host.config.lanes, &self.host.clock)),
            1 => drop(self.clients[dice.place(SESSIONS.into())].join(&self.host.config.lanes, &self.host.clock)),
            _ => drop(self.operator.join(&self.host.config.lanes, &self.host.clock)),
        }
        Ok(())
    }

    fn switch(&mut self, dice: &mut Dice) {
        let scope = [KILL_ALL, KILL_ACCOUNT, KILL_SYMBOL][dice.place(3)];
        let (on, cancel, target) = (u8::from(dice.one_in(2)), dice.below(2) as u8, dice.below(3) as u32);
        let kill = Kill { scope, on, cancel, target, ..Kill::default() };
        if self.operator.say(&self.host.clock, RecordKind::Kill, &kill) {
            self.tally.count("kill switches turned");
        }
    }

    fn inquire(&mut self, dice: &mut Dice) {
        let orders: Vec<u64> = self.oracle.truths.keys().copied().collect();
        let Some(&order) = orders.get(dice.place(orders.len())) else { return };
        if self.operator.say(&self.host.clock, RecordKind::Inquire, &Inquire { order, ..Inquire::default() }) {
            self.tally.count("operator's questions");
        }
    }

    /// Venues first, and the OMS when all that they said is there.
    fn end_day(&mut self) -> Checked {
        self.settle()?;
        for line in &mut self.lines {
            line.end_day(around!(self));
        }
        self.settle()?;
        if self.operator.say(&self.host.clock, RecordKind::DayEnd, &DayEnd { day: 20_260_202, ..DayEnd::default() }) {
            self.tally.count("days ended");
        }
        self.turns(8, 0)?;
        if let Some(oms) = self.host.sequencer() {
            self.oracle.note_forgotten(oms.core())?;
        }
        self.settle()
    }

    fn kill_oms(&mut self, dice: &mut Dice) {
        if !self.host.kill() {
            return;
        }
        self.tally.count("kills between turns");
        match self.plant {
            Some(Plant::ForgedLane) => {
                self.lines.iter_mut().for_each(|line| line.lanes = None);
                plants::forge_lanes(&self.host);
            }
            Some(Plant::CutJournal) => plants::cut_journal(&self.host, dice),
            _ => {}
        }
    }

    fn kill_in_start(&mut self, reading: u64) -> Checked {
        self.host.kill();
        self.start(reading)?;
        if !self.host.is_up() {
            self.tally.count("kills in a start");
            self.tell(|| format!("      killed at reading {reading}"));
        }
        Ok(())
    }

    fn stop(&mut self, dice: &mut Dice) -> Checked {
        let kill_at = dice.below(4);
        if !self.host.is_up() {
            return Ok(());
        }
        let stopped = self.host.call(kill_at, |oms| oms.stop());
        let is_killed = !self.host.is_up();
        self.noted(stopped)?;
        self.tally.count(if is_killed { "kills in a stop" } else { "orderly stops" });
        self.host.kill();
        Ok(())
    }

    fn kill_gateway(&mut self, dice: &mut Dice) -> Checked {
        let at = dice.place(self.lines.len());
        if self.lines[at].lanes.take().is_some() {
            self.tally.count("gateways killed");
            self.lines[at].cut(dice, around!(self))?;
        }
        Ok(())
    }

    fn lose_power(&mut self, dice: &mut Dice) -> Checked {
        self.host.kill();
        self.clients.iter_mut().for_each(|client| client.lanes = None);
        self.operator.control = None;
        for line in &mut self.lines {
            line.lanes = None;
            line.cut(dice, around!(self))?;
        }
        let fate = self.host.lose_power(dice);
        self.oracle.power_lost();
        self.is_after_power = true;
        self.tally.count("power lost");
        self.tally.count(match fate {
            Fate::Kept => "power lost, and nothing else",
            Fate::Gone => "power lost with all that was not synced",
            Fate::InPieces => "power lost in pieces",
            Fate::Torn => "power lost with a torn tail",
        });
        let is_stale = dice.one_in(2) && self.host.put_lanes_back();
        self.tally.count(if is_stale { "reboots with stale lanes" } else { "reboots with fresh lanes" });
        self.tell(|| format!("      {fate:?}, stale lanes: {is_stale}"));
        Ok(())
    }

    /// Starts the OMS if it is away.
    pub fn start(&mut self, kill_at: u64) -> Checked {
        if self.host.is_up() {
            return Ok(());
        }
        let mut started = self.host.start(kill_at);
        if let Err(OmsError::Open(tickpath_log::OpenError::HasReader { .. })) = started {
            // A gateway reads a lane that was never named by the journal. It is stopped, as the refusal asks.
            self.tally.count("starts refused until a gateway was stopped");
            self.lines.iter_mut().for_each(|line| line.lanes = None);
            started = self.host.start(kill_at);
        }
        self.noted(started)?;
        if self.host.is_up() { self.started() } else { Ok(()) }
    }

    fn started(&mut self) -> Checked {
        self.tally.count("starts");
        let stamp = self.host.clock.ticks();
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        (0..VENUES.len() as u32).for_each(|symbol| oms.tick(stamp, &top(symbol, 100)));
        if std::mem::take(&mut self.is_after_power) {
            self.oracle.note_lost(oms.core(), &mut self.tally)?;
        }
        self.leave_old_lanes();
        Ok(())
    }

    /// Whoever had a lane open that was made anew closes it.
    fn leave_old_lanes(&mut self) {
        let lanes = &self.host.config.lanes;
        for client in &mut self.clients {
            let session = client.session;
            client.lanes.take_if(|joined| {
                !is_current(lanes, LaneKind::Requests(session), joined.requests.owner())
                    || !is_current(lanes, LaneKind::Reports(session), joined.reports.owner())
            });
        }
        for line in &mut self.lines {
            let venue: VenueId = line.id;
            line.lanes.take_if(|joined| {
                !is_current(lanes, LaneKind::VenueRequests(venue), joined.requests.owner())
                    || !is_current(lanes, LaneKind::VenueReports(venue), joined.reports.owner())
            });
        }
        self.operator.control.take_if(|joined| !is_current(lanes, LaneKind::Control, joined.owner()));
    }

    /// Everybody who is away comes. Once the OMS is up nothing may keep them.
    pub fn join_all(&mut self) -> Checked {
        let (lanes, clock) = (&self.host.config.lanes, &self.host.clock);
        let clients = self.clients.iter_mut().map(|client| client.join(lanes, clock));
        let lines = self.lines.iter_mut().map(|line| line.join(lanes, clock));
        let mut joined = clients.chain(lines).chain([self.operator.join(lanes, clock)]);
        joined.try_for_each(|joined| joined.or_else(|e| broken("who comes back is let in", e.to_string())))
    }

    /// What must hold at any time.
    fn watch(&mut self) -> Checked {
        let Some(oms) = self.host.sequencer() else { return Ok(()) };
        self.oracle.check_told(oms.core())?;
        self.oracle.check_exposure(oms.core(), false)
    }
}

//! `tickpath oms kill|unkill|mass-cancel|resolve|enter|day-end`: an admin's words to a running OMS, and what came of them.
//!
//! ```text
//!   tickpath oms kill account 7 --cancel
//!   order 3474042.12 of session 0 (client order id 12): canceled, 0 filled
//!   record 4712: the kill switch of account 7 is on; 1 order: 1 canceled
//! ```
//! Each word is an input in the OMS's journal. A command ends when nothing of what it asked for is on its way any more, or
//! says what still is.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use tickpath_client::{Client, Event, Since};
use tickpath_clock::{Clock, HostClock, utc_day, utc_ns};
use tickpath_market::{
    AccountId, ClientOrderId, ExecId, ExecutionReport, OrdStatus, OrderId, OrderType, Price, Quantity, Side,
    TimeInForce, VenueOrderId,
};
use tickpath_orders::{
    CancelScope, DayEnd, EnterFill, EnterOrder, KILL_ACCOUNT, KILL_ALL, KILL_SESSION, KILL_SYMBOL, Kill, RecordKind,
    Resolve, scope_named,
};
use tickpath_server::settings::Settings;
use tickpath_session::Query;
use zerocopy::{Immutable, IntoBytes};

use crate::args::Usage;
use crate::order::{Whom, order_id, price, quantity, side, symbol, time_in_force};
use crate::orders::id;
use crate::outcome::Outcome;

/// Between two questions after an order that is on its way, in nanoseconds.
const ASK_NS: u64 = 20_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Which OMS, and as which admin.
#[derive(Debug, Clone, Args)]
pub struct Admin {
    /// The file of the OMS: it names its address and its instruments
    #[arg(long, value_name = "FILE", default_value = "oms.toml")]
    pub config: PathBuf,
    /// The address of the OMS, if it is not the one in its file
    #[arg(long, value_name = "URL")]
    pub oms: Option<String>,
    /// The user: an admin
    #[arg(long, value_name = "NAME", default_value = "admin")]
    pub user: String,
    /// The file whose first line is the password; NAME.password beside the OMS's file if not given
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// How long to wait until what was asked for is decided, in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub wait: u32,
}

/// firm, account N, session N or symbol NAME.
#[derive(Debug, Clone, Args)]
pub struct Scope {
    /// firm, account N, session N or symbol NAME
    #[arg(value_name = "SCOPE", num_args = 1..=2, required = true)]
    pub scope: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct KillArgs {
    #[command(flatten)]
    pub scope: Scope,
    /// Cancel what works there, too
    #[arg(long)]
    pub cancel: bool,
    #[command(flatten)]
    pub admin: Admin,
}

#[derive(Debug, Clone, Args)]
pub struct ScopeArgs {
    #[command(flatten)]
    pub scope: Scope,
    #[command(flatten)]
    pub admin: Admin,
}

#[derive(Debug, Clone, Args)]
pub struct ResolveArgs {
    /// The order, as `tickpath orders` prints it
    #[arg(value_name = "EPOCH.N", value_parser = order_id)]
    pub order: OrderId,
    /// How it stands: filled, canceled, rejected, expired or working
    #[arg(value_parser = resolution)]
    pub status: OrdStatus,
    /// All that was filled of it
    #[arg(long, value_name = "QUANTITY", value_parser = quantity)]
    pub filled: Quantity,
    /// Who says so and why, up to 32 bytes: it is in the journal
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Reason,
    #[command(flatten)]
    pub admin: Admin,
}

#[derive(Debug, Clone, Args)]
pub struct DayEndArgs {
    /// Which day has ended, as 20261122; today in UTC if not given
    #[arg(long, value_name = "YYYYMMDD", value_parser = day)]
    pub day: Option<u32>,
    #[command(flatten)]
    pub admin: Admin,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Enter {
    /// An order that its venue works and that the OMS does not know
    Order(OrderArgs),
    /// A fill that never came
    Fill(FillArgs),
}

#[derive(Debug, Clone, Args)]
pub struct OrderArgs {
    /// The instrument's name
    pub symbol: String,
    /// buy or sell
    #[arg(value_parser = side)]
    pub side: Side,
    /// All that it asks for, what is filled included
    #[arg(value_parser = quantity)]
    pub quantity: Quantity,
    /// Its limit; none for a market order
    #[arg(value_parser = price)]
    pub price: Option<Price>,
    /// What it was sent to the venue as, as `tickpath orders --foreign` prints it
    #[arg(long, value_name = "EPOCH.N", value_parser = order_id, required_unless_present = "venue_order_id")]
    pub sent_as: Option<OrderId>,
    /// The venue's own id of it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub venue_order_id: Option<u64>,
    /// The account
    #[arg(long, value_name = "N")]
    pub account: u32,
    /// The session that it belongs to from now on
    #[arg(long, value_name = "N")]
    pub session: u16,
    /// Its id there, not used before this day; made of the time if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub id: Option<u64>,
    /// How long it works: day, gtc, ioc or fok
    #[arg(long, value_name = "TIF", default_value = "day", value_parser = time_in_force)]
    pub tif: TimeInForce,
    /// Who says so and why, up to 32 bytes: it is in the journal
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Reason,
    #[command(flatten)]
    pub admin: Admin,
}

#[derive(Debug, Clone, Args)]
pub struct FillArgs {
    /// The order, as `tickpath orders` prints it
    #[arg(value_name = "EPOCH.N", value_parser = order_id)]
    pub order: OrderId,
    /// How much was filled
    #[arg(value_parser = quantity)]
    pub quantity: Quantity,
    /// At which price
    #[arg(value_parser = price)]
    pub price: Price,
    /// The venue's id of the execution: by it the venue's own report changes nothing if it comes after all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub exec_id: u64,
    /// The venue's number of the event, if it is known
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub venue_sequence: Option<u64>,
    /// Who says so and why, up to 32 bytes: it is in the journal
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Reason,
    #[command(flatten)]
    pub admin: Admin,
}

/// A text as a record has it.
#[derive(Debug, Clone, Copy)]
pub struct Reason([u8; 32]);

pub fn kill(args: &KillArgs, on: bool) -> anyhow::Result<Outcome> {
    let settings = args.admin.whom().settings()?;
    let (scope, target, name) = args.scope.read(&settings)?;
    let word = Kill { scope, on: on.into(), cancel: (on && args.cancel).into(), target, ..Kill::default() };
    let what = format!("the kill switch of {name} is {}", if on { "on" } else { "off" });
    args.admin.say(&settings, RecordKind::Kill, &word, &what)
}

pub fn mass_cancel(args: &ScopeArgs) -> anyhow::Result<Outcome> {
    let settings = args.admin.whom().settings()?;
    let (scope, target, name) = args.scope.read(&settings)?;
    let word = CancelScope { scope, target, ..CancelScope::default() };
    args.admin.say(&settings, RecordKind::CancelScope, &word, &format!("what works of {name} is canceled"))
}

pub fn resolve(args: &ResolveArgs) -> anyhow::Result<Outcome> {
    let settings = args.admin.whom().settings()?;
    let word = Resolve {
        order: args.order.0,
        cumulative_quantity: args.filled,
        status: args.status.code(),
        reason: args.reason.0,
        ..Resolve::default()
    };
    args.admin.say(&settings, RecordKind::Resolve, &word, "the order is resolved")
}

pub fn day_end(args: &DayEndArgs) -> anyhow::Result<Outcome> {
    let settings = args.admin.whom().settings()?;
    let day = args.day.unwrap_or_else(today);
    args.admin.say(&settings, RecordKind::DayEnd, &DayEnd { day, lane_sequence: 0 }, &format!("day {day} has ended"))
}

pub fn enter(enter: &Enter) -> anyhow::Result<Outcome> {
    match enter {
        Enter::Order(args) => {
            let settings = args.admin.whom().settings()?;
            let instrument = symbol(&settings, &args.symbol)?;
            let word = EnterOrder {
                client_order_id: ClientOrderId(args.id.unwrap_or_else(utc_ns)),
                sent_as: args.sent_as.unwrap_or_default(),
                venue_order_id: VenueOrderId(args.venue_order_id.unwrap_or_default()),
                price: args.price.unwrap_or_default(),
                quantity: args.quantity,
                symbol: instrument.symbol,
                account: AccountId(args.account),
                venue: instrument.venue,
                session: args.session,
                side: args.side.code(),
                order_type: if args.price.is_some() { OrderType::Limit } else { OrderType::Market }.code(),
                time_in_force: args.tif.code(),
                reason: args.reason.0,
                ..EnterOrder::default()
            };
            args.admin.say(&settings, RecordKind::EnterOrder, &word, "the order is entered")
        }
        Enter::Fill(args) => {
            let settings = args.admin.whom().settings()?;
            let word = EnterFill {
                order: args.order.0,
                exec_id: ExecId(args.exec_id),
                venue_sequence: args.venue_sequence.unwrap_or_default(),
                price: args.price,
                quantity: args.quantity,
                reason: args.reason.0,
                ..EnterFill::default()
            };
            args.admin.say(&settings, RecordKind::EnterFill, &word, "the fill is entered")
        }
    }
}

impl Admin {
    fn whom(&self) -> Whom {
        Whom {
            config: self.config.clone(),
            oms: self.oms.clone(),
            user: self.user.clone(),
            password_file: self.password_file.clone(),
            session: None,
        }
    }

    /// Says a word, and tells what came of it and of each order that it meant.
    fn say<W: IntoBytes + Immutable>(
        &self,
        settings: &Settings,
        kind: RecordKind,
        word: &W,
        what: &str,
    ) -> anyhow::Result<Outcome> {
        let client = self.whom().connect(settings, Since::Now)?;
        if client.welcome().role != tickpath_session::Role::Admin.code() {
            client.close();
            bail!(Usage(format!("'{}' is no admin; name one by --user", self.user)));
        }
        let mut talk = Talk { client, clock: HostClock::get()?, patience_ns: u64::from(self.wait) * SECOND_NS };
        let (record, mut orders) = talk.word(kind, word.as_bytes())?;
        talk.follow(&mut orders)?;
        talk.client.close();
        Ok(tell(record, what, &orders))
    }
}

/// A connection on which one word is said.
struct Talk {
    client: Client,
    clock: HostClock,
    patience_ns: u64,
}

/// An order with its session.
type Row = (u16, ExecutionReport);

impl Talk {
    /// Says a word; gives its record and the orders that it meant.
    fn word(&mut self, kind: RecordKind, record: &[u8]) -> anyhow::Result<(u64, Vec<Row>)> {
        if self.client.word(kind.code(), record).is_err() {
            bail!("the OMS went away before the word was said; say it again");
        }
        let (answer, rows) = self.hear(|event| match event {
            Event::WordAnswered(answer) => Some(answer.clone()),
            _ => None,
        })?;
        match answer {
            Some(Ok(record)) => Ok((record, rows)),
            Some(Err(why)) => bail!("{why}"),
            None => bail!("the OMS has not answered; whether it took the word `tickpath orders` and its log tell"),
        }
    }

    /// Asks after each order that is on its way until it is there, or the time is over.
    fn follow(&mut self, orders: &mut [Row]) -> anyhow::Result<()> {
        let from = self.clock.ticks();
        while orders.iter().any(|(_, order)| is_pending(order))
            && self.clock.ns_between(from, self.clock.ticks()) < self.patience_ns as i64
        {
            tickpath_clock::sleep_ns(ASK_NS);
            for (_, order) in orders.iter_mut().filter(|(_, order)| is_pending(order)) {
                let query = Query { what: Query::ORDER, order: order.order_id.0, ..Query::default() };
                if self.client.query(query).is_err() {
                    bail!("the OMS went away; `tickpath orders` tells how the orders stand");
                }
                let (answer, rows) = self.hear(|event| matches!(event, Event::Answered(_)).then_some(()))?;
                if answer.is_none() {
                    bail!("the OMS has not answered; `tickpath orders` tells how the orders stand");
                }
                if let Some((_, now)) = rows.first() {
                    *order = *now;
                }
            }
        }
        Ok(())
    }

    /// Hears until this is there, or the time is over; and the rows that came before it.
    fn hear<T>(&mut self, is_it: impl Fn(&Event) -> Option<T>) -> anyhow::Result<(Option<T>, Vec<Row>)> {
        let (from, mut found, mut rows, mut ended) = (self.clock.ticks(), None, Vec::new(), None);
        while found.is_none() && self.clock.ns_between(from, self.clock.ticks()) < self.patience_ns as i64 {
            self.client.wait(10_000_000);
            self.client.poll(|event| match event {
                Event::OrderRow { session, report } => rows.push((session, report)),
                Event::Disconnected { why } => ended = Some(why),
                other => found = found.take().or_else(|| is_it(&other)),
            })?;
            if let Some(why) = ended.take().filter(|_| found.is_none()) {
                let doubt = "whether the OMS took the word is not known; `tickpath orders` tells how the orders stand";
                return Err(anyhow::Error::new(why).context(doubt));
            }
        }
        Ok((found, rows))
    }
}

impl Scope {
    /// Its code, its target, and what it is called.
    fn read(&self, settings: &Settings) -> anyhow::Result<(u8, u32, String)> {
        let words: Vec<&str> = self.scope.iter().map(String::as_str).collect();
        let number = |text: &str| text.parse::<u16>().map(u32::from).ok();
        let scope = words.first().and_then(|name| scope_named(name));
        Ok(match (scope, &words[..]) {
            (Some(KILL_ALL), [name]) => (KILL_ALL, 0, format!("the {name}")),
            (Some(KILL_SYMBOL), [_, name]) => (KILL_SYMBOL, symbol(settings, name)?.symbol.0, words.join(" ")),
            (Some(scope @ (KILL_ACCOUNT | KILL_SESSION)), [_, text]) if number(text).is_some() => {
                (scope, number(text).unwrap_or_default(), words.join(" "))
            }
            _ => bail!(Usage(format!(
                "'{}' is no scope; use firm, account N, session N or symbol NAME, with N below 65536",
                words.join(" ")
            ))),
        })
    }
}

/// Prints what became of each order, and how many of them stand how.
fn tell(record: u64, what: &str, orders: &[Row]) -> Outcome {
    for (session, order) in orders {
        println!(
            "order {} of session {session} (client order id {}): {}, {} filled",
            id(order.order_id),
            order.client_order_id.0,
            status(order),
            order.cumulative_quantity,
        );
    }
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (_, order) in orders {
        let status = status(order);
        match counts.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => counts.push((status, 1)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let orders_told = match orders.len() {
        0 => String::new(),
        1 => format!("; 1 order: {}", counts.join(", ")),
        count => format!("; {count} orders: {}", counts.join(", ")),
    };
    println!("record {record}: {what}{orders_told}");
    match orders.iter().filter(|(_, order)| is_pending(order)).count() {
        0 => Outcome::Good,
        pending => {
            eprintln!("tickpath: {pending} are not decided yet; `tickpath orders` tells how they stand");
            Outcome::Lost
        }
    }
}

fn status(order: &ExecutionReport) -> String {
    OrdStatus::from_code(order.status).map_or_else(|| order.status.to_string(), crate::log::fields::word)
}

/// Whether something that was asked of the order is on its way.
fn is_pending(order: &ExecutionReport) -> bool {
    let pending = [OrdStatus::PendingCancel, OrdStatus::PendingNew, OrdStatus::PendingReplace];
    OrdStatus::from_code(order.status).is_some_and(|status| pending.contains(&status))
}

fn resolution(text: &str) -> Result<OrdStatus, String> {
    match text {
        "filled" => Ok(OrdStatus::Filled),
        "canceled" => Ok(OrdStatus::Canceled),
        "rejected" => Ok(OrdStatus::Rejected),
        "expired" => Ok(OrdStatus::Expired),
        "working" => Ok(OrdStatus::New),
        _ => Err("use filled, canceled, rejected, expired or working".to_owned()),
    }
}

fn reason(text: &str) -> Result<Reason, String> {
    let (mut bytes, text) = ([0; 32], text.trim().as_bytes());
    if text.is_empty() || text.len() > bytes.len() || text.contains(&0) {
        return Err("a reason has 1 to 32 bytes of text: who says so, and why".to_owned());
    }
    bytes[..text.len()].copy_from_slice(text);
    Ok(Reason(bytes))
}

fn day(text: &str) -> Result<u32, String> {
    let day = text.parse::<u32>().ok().filter(|_| text.len() == 8);
    let is_day = |day: &u32| (1..=12).contains(&(day / 100 % 100)) && (1..=31).contains(&(day % 100));
    day.filter(is_day).ok_or_else(|| "write the day like 20261122".to_owned())
}

/// Today in UTC, as 20261122.
fn today() -> u32 {
    utc_day(utc_ns())
}

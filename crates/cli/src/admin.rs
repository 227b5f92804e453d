//! `tickpath oms kill|unkill|mass-cancel|resolve|enter|day-end`: admin commands to a running OMS, and their outcome.
//!
//! ```text
//!   tickpath oms kill account 7 --cancel
//!   order 3474042.12 of session 0 (client order id 12): canceled, 0 filled
//!   record 4712: the kill switch of account 7 is on; 1 order: 1 canceled
//! ```
//! Each admin command is an input in the OMS's journal. The program ends when nothing that the command asked for is
//! pending any more, or reports what still is.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use tickpath_clock::{Clock, HostClock, utc_ns};
use tickpath_market::{
    AccountId, ClientOrderId, ExecId, ExecutionReport, OrdStatus, OrderId, OrderType, Price, Quantity, Side,
    TimeInForce, VenueId, VenueOrderId,
};
use tickpath_oms_client::{Client, ClientEvent, Since};
use tickpath_oms_core::{
    CancelScope, DayEnd, EnterFill, EnterOrder, EnterPosition, KILL_ACCOUNT, KILL_ALL, KILL_SESSION, KILL_SYMBOL,
    KillSwitch, RecordKind, Resolve, scope_by_name,
};
use tickpath_oms_protocol::Query;
use tickpath_oms_runtime::calendar::is_date;
use tickpath_oms_text::code_name;
use tickpath_oms_text::parse::{order_id, price, quantity, side, time_in_force};
use zerocopy::IntoBytes;

use crate::instruments::Instruments;
use crate::oms_files::PartialSettings;
use crate::order::LoginArgs;
use tickpath_cli_terminal::args::{CliUsageError, UnansweredError, bail_usage, one_of};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{count_text, print_note, print_text};

/// Time between two queries of a pending order, in nanoseconds.
const QUERY_PAUSE_NS: u64 = 20_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Address of the OMS, and the login of the admin.
#[derive(Debug, Clone, Args)]
pub struct AdminArgs {
    /// Configuration file of the OMS, for its address and instruments; not needed with --oms and --password-file
    #[arg(long, value_name = "FILE", default_value = "oms.toml")]
    pub config: PathBuf,
    /// Address of the OMS; default: the address in its file
    #[arg(long, value_name = "URL")]
    pub oms: Option<String>,
    /// Name of the user, who must be an admin
    #[arg(long, value_name = "NAME", default_value = "admin")]
    pub user: String,
    /// File whose first line is the password; default: NAME.password beside the OMS's file
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Time limit for the outcome of the command, in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub wait: u32,
}

/// Login of the admin, with the reason of an entry by hand.
#[derive(Debug, Clone, Args)]
pub struct OperatorArgs {
    /// Name and reason of the operator, up to 32 bytes, for the journal
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Reason,
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// firm, account N, session N or symbol NAME.
#[derive(Debug, Clone, Args)]
pub struct ScopeName {
    /// firm, account N, session N or symbol NAME
    #[arg(value_name = "SCOPE", num_args = 1..=2, required = true)]
    pub scope: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct KillArgs {
    #[command(flatten)]
    pub scope: ScopeName,
    /// Also cancel the working orders of the scope
    #[arg(long)]
    pub cancel: bool,
    #[command(flatten)]
    pub admin: AdminArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ScopeArgs {
    #[command(flatten)]
    pub scope: ScopeName,
    #[command(flatten)]
    pub admin: AdminArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ResolveArgs {
    /// Id of the order, as `tickpath orders` prints it
    #[arg(value_name = "EPOCH.N", value_parser = order_id)]
    pub order: OrderId,
    /// State of the order: filled, canceled, rejected, expired or working
    #[arg(value_parser = resolution)]
    pub status: OrdStatus,
    /// Total filled quantity
    #[arg(long, value_name = "QUANTITY", value_parser = quantity, allow_negative_numbers = true)]
    pub filled: Quantity,
    #[command(flatten)]
    pub operator: OperatorArgs,
}

#[derive(Debug, Clone, Args)]
pub struct DayEndArgs {
    /// The day that has ended, as 20261122; default: today, in the time zone of [day] in the file or else in UTC
    #[arg(long, value_name = "YYYYMMDD", value_parser = day)]
    pub day: Option<u32>,
    #[command(flatten)]
    pub admin: AdminArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum EnterCommand {
    /// Enter an order that works at its venue and is unknown to the OMS
    Order(OrderArgs),
    /// Enter a fill whose report never arrived
    Fill(FillArgs),
    /// Enter the position of an account at the beginning of the day, or a change of a position
    Position(PositionArgs),
}

#[derive(Debug, Clone, Args)]
pub struct OrderArgs {
    /// Name or number of the instrument
    pub symbol: String,
    /// buy or sell
    #[arg(value_parser = side)]
    pub side: Side,
    /// Total quantity, the filled quantity included
    #[arg(value_parser = quantity, allow_negative_numbers = true)]
    pub quantity: Quantity,
    /// Limit price; none for a market order
    #[arg(value_parser = price, allow_negative_numbers = true)]
    pub price: Option<Price>,
    /// Id under which the order was sent to the venue, as `tickpath orders --foreign` prints it
    #[arg(long, value_name = "EPOCH.N", value_parser = order_id, required_unless_present = "venue_order_id")]
    pub sent_as: Option<OrderId>,
    /// The venue's id of the order
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub venue_order_id: Option<u64>,
    /// Number of the order's venue; default: the venue of the instrument in the OMS's files
    #[arg(long, value_name = "N")]
    pub venue: Option<u16>,
    /// Account of the order
    #[arg(long, value_name = "N")]
    pub account: u32,
    /// Session that owns the order from now on
    #[arg(long, value_name = "N")]
    pub session: u16,
    /// Client order id in that session, unused on this day; default: the time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub id: Option<u64>,
    /// Time in force: day, gtc, ioc or fok
    #[arg(long, value_name = "TIF", default_value = "day", value_parser = time_in_force)]
    pub tif: TimeInForce,
    #[command(flatten)]
    pub operator: OperatorArgs,
}

#[derive(Debug, Clone, Args)]
pub struct FillArgs {
    /// Id of the order, as `tickpath orders` prints it
    #[arg(value_name = "EPOCH.N", value_parser = order_id)]
    pub order: OrderId,
    /// Filled quantity
    #[arg(value_parser = quantity, allow_negative_numbers = true)]
    pub quantity: Quantity,
    /// Price of the fill
    #[arg(value_parser = price, allow_negative_numbers = true)]
    pub price: Price,
    /// The venue's id of the execution: a late report of the venue with this id is a duplicate and changes nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub exec_id: u64,
    /// The venue's sequence number of the event, if it is known
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub venue_sequence: Option<u64>,
    #[command(flatten)]
    pub operator: OperatorArgs,
}

#[derive(Debug, Clone, Args)]
pub struct PositionArgs {
    /// Account of the position
    pub account: u32,
    /// Name or number of the instrument
    pub symbol: String,
    /// Net position, negative if it is short
    #[arg(value_parser = quantity, allow_negative_numbers = true)]
    pub quantity: Quantity,
    /// Price from which the profit counts; default: the latest price that the OMS knows
    #[arg(value_parser = price, allow_negative_numbers = true)]
    pub price: Option<Price>,
    /// Add the quantity to the position, also where the account has traded already
    #[arg(long)]
    pub adjust: bool,
    #[command(flatten)]
    pub operator: OperatorArgs,
}

/// A reason in the fixed-size form that a journal record holds.
#[derive(Debug, Clone, Copy)]
pub struct Reason(pub [u8; 32]);

pub fn kill(args: &KillArgs, on: bool) -> anyhow::Result<CliOutcome> {
    let (connection, scope, target, name) = args.admin.connect_for_scope(&args.scope)?;
    let cancel = on && args.cancel;
    let command = KillSwitch { scope, on: on.into(), cancel: cancel.into(), target, ..KillSwitch::default() };
    let what = format!("the kill switch of {name} is {}", if on { "on" } else { "off" });
    connection.run_command(RecordKind::Kill, command.as_bytes(), &what)
}

pub fn mass_cancel(args: &ScopeArgs) -> anyhow::Result<CliOutcome> {
    let (connection, scope, target, name) = args.admin.connect_for_scope(&args.scope)?;
    let command = CancelScope { scope, target, ..CancelScope::default() };
    let what = format!("the working orders of {name} are canceled");
    connection.run_command(RecordKind::CancelScope, command.as_bytes(), &what)
}

pub fn resolve(args: &ResolveArgs) -> anyhow::Result<CliOutcome> {
    let command = Resolve {
        order: args.order.0,
        cumulative_quantity: args.filled,
        status: args.status.code(),
        reason: args.operator.reason.0,
        ..Resolve::default()
    };
    let (_, connection) = args.operator.admin.open()?;
    connection.run_command(RecordKind::Resolve, command.as_bytes(), "the order is resolved")
}

pub fn day_end(args: &DayEndArgs) -> anyhow::Result<CliOutcome> {
    let (settings, connection) = args.admin.open()?;
    let day = args.day.unwrap_or_else(|| settings.day(utc_ns()));
    let command = DayEnd { day, lane_sequence: 0 };
    connection.run_command(RecordKind::DayEnd, command.as_bytes(), &format!("day {day} has ended"))
}

pub fn enter(enter: &EnterCommand) -> anyhow::Result<CliOutcome> {
    match enter {
        EnterCommand::Order(args) => {
            let (settings, mut connection) = args.operator.admin.open()?;
            let instrument = connection.instruments(&settings)?.find(&args.symbol)?;
            let Some(venue) = args.venue.map(VenueId).or(instrument.venue) else {
                bail!(settings.missing_part("the venue of the instrument", "its number with --venue N"))
            };
            let command = EnterOrder {
                client_order_id: ClientOrderId(args.id.unwrap_or_else(utc_ns)),
                sent_as: args.sent_as.unwrap_or_default(),
                venue_order_id: VenueOrderId(args.venue_order_id.unwrap_or_default()),
                price: args.price.unwrap_or_default(),
                quantity: args.quantity,
                symbol: instrument.symbol,
                account: AccountId(args.account),
                venue,
                session: args.session,
                side: args.side.code(),
                order_type: if args.price.is_some() { OrderType::Limit } else { OrderType::Market }.code(),
                time_in_force: args.tif.code(),
                reason: args.operator.reason.0,
                ..EnterOrder::default()
            };
            connection.run_command(RecordKind::EnterOrder, command.as_bytes(), "the order is entered")
        }
        EnterCommand::Fill(args) => {
            let command = EnterFill {
                order: args.order.0,
                exec_id: ExecId(args.exec_id),
                venue_sequence: args.venue_sequence.unwrap_or_default(),
                price: args.price,
                quantity: args.quantity,
                reason: args.operator.reason.0,
                ..EnterFill::default()
            };
            let (_, connection) = args.operator.admin.open()?;
            connection.run_command(RecordKind::EnterFill, command.as_bytes(), "the fill is entered")
        }
        EnterCommand::Position(args) => {
            let (settings, mut connection) = args.operator.admin.open()?;
            let command = EnterPosition {
                quantity: args.quantity,
                price: args.price.unwrap_or_default(),
                account: AccountId(args.account),
                symbol: connection.instruments(&settings)?.number(&args.symbol)?,
                adjusts: args.adjust.into(),
                is_priced: args.price.is_some().into(),
                reason: args.operator.reason.0,
                ..EnterPosition::default()
            };
            connection.run_command(RecordKind::EnterPosition, command.as_bytes(), "the position is entered")
        }
    }
}

impl AdminArgs {
    /// Returns the address and the login of the OMS, without a session.
    pub fn login(&self) -> LoginArgs {
        let Self { config, oms, user, password_file, .. } = self.clone();
        LoginArgs { config, oms, user, password_file, session: None }
    }

    /// Logs in for a command about a scope, and returns the scope's code, its target and its name in a sentence.
    fn connect_for_scope(&self, scope: &ScopeName) -> anyhow::Result<(AdminConnection, u8, u32, String)> {
        let (code, target) = scope.parse()?;
        let (settings, mut connection) = self.open()?;
        let target = match target {
            Ok(number) => number,
            Err(name) => connection.instruments(&settings)?.number(name)?.0,
        };
        Ok((connection, code, target, scope.name()))
    }

    /// Reads the file of the OMS as far as it can be read, and logs in as the admin.
    fn open(&self) -> anyhow::Result<(PartialSettings, AdminConnection)> {
        let settings = self.login().read_settings();
        let connection = self.connect(&settings)?;
        Ok((settings, connection))
    }

    /// Logs in as the admin.
    pub fn connect(&self, settings: &PartialSettings) -> anyhow::Result<AdminConnection> {
        AdminConnection::new(self.login().connect(settings, Since::Now)?, self.wait)?.require_admin(&self.user)
    }
}

/// A connection for admin commands and queries, each with a time limit for its answer.
pub struct AdminConnection {
    pub client: Client,
    clock: HostClock,
    timeout_ns: u64,
}

/// An order with the number of its session.
pub type SessionOrder = (u16, ExecutionReport);

impl AdminConnection {
    /// Wraps a connection; each answer is awaited for at most `wait` seconds.
    pub fn new(client: Client, wait: u32) -> anyhow::Result<Self> {
        Ok(Self { client, clock: HostClock::get()?, timeout_ns: u64::from(wait) * SECOND_NS })
    }

    /// Rejects a user who is no admin, and closes the connection.
    pub fn require_admin(self, user: &str) -> anyhow::Result<Self> {
        if self.client.welcome().role == tickpath_oms_protocol::UserRole::Admin.code() {
            return Ok(self);
        }
        self.client.close();
        bail_usage!("user '{user}' is no admin; name an admin with --user")
    }

    pub fn instruments<'a>(&mut self, settings: &'a PartialSettings) -> anyhow::Result<Instruments<'a>> {
        Instruments::request(&mut self.client, settings, (self.timeout_ns / SECOND_NS) as u32)
    }

    /// Sends an admin command, prints its outcome and that of each affected order, and closes the connection.
    fn run_command(mut self, kind: RecordKind, command: &[u8], what: &str) -> anyhow::Result<CliOutcome> {
        let (record, mut orders) = self.send_command(kind, command)?;
        // The OMS has acknowledged the command, even if the connection is lost from here on.
        let lost = self.await_decisions(&mut orders);
        self.client.close();
        let what = match kind {
            RecordKind::CancelScope if orders.is_empty() => format!("{what}; none was open"),
            _ => what.to_owned(),
        };
        let outcome = print_outcome(record, &what, &orders, lost);
        if let RecordKind::DayEnd = kind {
            note_working(&orders);
        }
        outcome
    }

    /// Sends an admin command, and returns its journal record and the affected orders.
    pub fn send_command(&mut self, kind: RecordKind, record: &[u8]) -> anyhow::Result<(u64, Vec<SessionOrder>)> {
        if self.client.admin_command(kind.code(), record).is_err() {
            bail!("the connection was lost before the command was sent; run it again");
        }
        let reply = self.receive_until(|event| match event {
            ClientEvent::CommandAnswered(answer) => Some(answer.clone()),
            _ => None,
        });
        let doubt = "it is not known whether the OMS has accepted the command; check `tickpath orders` and its log";
        match reply.map_err(|why| UnansweredError(format!("{why}; {doubt}")))? {
            (Ok(record), rows) => Ok((record, rows)),
            (Err(why), _) => bail!("{why}"),
        }
    }

    /// Queries each pending order until its state is final or the time limit is over. Returns the reason if the
    /// connection ends first.
    fn await_decisions(&mut self, orders: &mut [SessionOrder]) -> Option<String> {
        let from = self.clock.ticks();
        while orders.iter().any(|(_, order)| is_pending(order)) && !self.is_timed_out(from) {
            tickpath_clock::sleep_ns(QUERY_PAUSE_NS);
            for (_, order) in orders.iter_mut().filter(|(_, order)| is_pending(order)) {
                match self.query(Query::ORDER, order.order_id.0) {
                    Ok(rows) => *order = rows.first().map_or(*order, |(_, now)| *now),
                    Err(why) => return Some(why),
                }
            }
        }
        None
    }

    /// Sends a query. Returns the rows of the answer, or the reason why there is none.
    pub fn query(&mut self, what: u32, order: u64) -> Result<Vec<SessionOrder>, String> {
        if self.client.query(Query { what, order, ..Query::default() }).is_err() {
            return Err("the connection was lost".to_owned());
        }
        self.receive_until(|event| matches!(event, ClientEvent::Answered(_)).then_some(())).map(|((), rows)| rows)
    }

    /// Waits for the venue's answer to the query of the admin command with this journal record. Returns the rows of
    /// the answer.
    pub fn await_venue_answer(&mut self, record: u64) -> anyhow::Result<Vec<SessionOrder>> {
        let from = self.clock.ticks();
        loop {
            let why = match self.query(Query::ANSWERED, record) {
                Ok(rows) if !rows.is_empty() => return Ok(rows),
                Ok(_) => "the venue has not answered in time".to_owned(),
                Err(why) => why,
            };
            if !self.client.is_connected() || self.is_timed_out(from) {
                bail!(UnansweredError(format!("record {record} queries the venue; its answer is not known: {why}")));
            }
            tickpath_clock::sleep_ns(QUERY_PAUSE_NS);
        }
    }

    /// Receives events until the answer is there. Returns the answer and the orders before it, or the reason why there
    /// is no answer: the connection was lost, or the time limit is over.
    pub fn receive_until<T>(
        &mut self,
        find_answer: impl Fn(&ClientEvent) -> Option<T>,
    ) -> Result<(T, Vec<SessionOrder>), String> {
        let (from, mut rows, mut answer, mut lost) = (self.clock.ticks(), Vec::new(), None, None);
        while answer.is_none() && lost.is_none() && !self.is_timed_out(from) {
            self.client.wait(10_000_000);
            let polled = self.client.poll(|event| match event {
                ClientEvent::OrderRow { session, report } => rows.push((session, report)),
                ClientEvent::Disconnected { why } => lost = Some(why),
                other => answer = answer.take().or_else(|| find_answer(&other)),
            });
            lost = lost.take().or(polled.err());
        }
        let reason = || lost.map_or_else(|| "the OMS has not answered in time".to_owned(), |why| why.to_string());
        answer.map(|answer| (answer, rows)).ok_or_else(reason)
    }

    /// Returns whether the time limit of an answer is over, counted from this time in ticks.
    fn is_timed_out(&self, from: u64) -> bool {
        self.clock.ns_between(from, self.clock.ticks()) >= self.timeout_ns as i64
    }
}

impl ScopeName {
    /// Returns the scope's code and its target: a number, or the name of a symbol.
    fn parse(&self) -> Result<(u8, Result<u32, &str>), CliUsageError> {
        let words: Vec<&str> = self.scope.iter().map(String::as_str).collect();
        let number = |text: &str| text.parse::<u16>().map(u32::from).ok();
        let scope = words.first().and_then(|name| scope_by_name(name));
        match (scope, &words[..]) {
            (Some(KILL_ALL), [_]) => Ok((KILL_ALL, Ok(0))),
            (Some(KILL_SYMBOL), &[_, name]) => Ok((KILL_SYMBOL, Err(name))),
            (Some(scope @ (KILL_ACCOUNT | KILL_SESSION)), [_, text]) if number(text).is_some() => {
                Ok((scope, Ok(number(text).unwrap_or_default())))
            }
            _ => bail_usage!(
                "'{}' is no scope; use firm, account N, session N or symbol NAME, with N below 65536",
                words.join(" ")
            ),
        }
    }

    /// Returns the scope's name for use in a sentence.
    fn name(&self) -> String {
        let words = self.scope.join(" ");
        if self.scope.len() == 1 { format!("the {words}") } else { words }
    }
}

/// Prints each order and the number of orders in each state. `lost` is the reason why the reports ended early.
fn print_outcome(record: u64, what: &str, orders: &[SessionOrder], lost: Option<String>) -> anyhow::Result<CliOutcome> {
    let mut text = String::new();
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (session, order) in orders {
        let status = status(order);
        text.push_str(&format!(
            "order {} of session {session} (client order id {}): {status}, {} filled\n",
            tickpath_oms_text::order_id(order.order_id),
            order.client_order_id.0,
            order.cumulative_quantity,
        ));
        match counts.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => counts.push((status, 1)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let summary = match orders.len() {
        0 => String::new(),
        count => format!("; {}: {}", count_text(count, "order"), counts.join(", ")),
    };
    text.push_str(&format!("record {record}: {what}{summary}\n"));
    let printed = print_text(&text);
    let pending = orders.iter().filter(|(_, order)| is_pending(order)).count();
    if pending > 0 {
        let why = lost.map_or_else(String::new, |why| format!(", and the connection was lost: {why}"));
        print_note(&format!("tickpath: orders still pending: {pending}{why}; `tickpath orders` shows their state"));
    }
    printed.map(|()| if pending == 0 { CliOutcome::Success } else { CliOutcome::Lost })
}

fn status(order: &ExecutionReport) -> String {
    OrdStatus::from_code(order.status).map_or_else(|| order.status.to_string(), code_name)
}

/// Prints a note about the orders that stay open after the end of the day, because their venues still work them.
fn note_working(orders: &[SessionOrder]) {
    let works = |(_, order): &&SessionOrder| order.leaves_quantity.0 > 0 && !is_pending(order);
    let count = orders.iter().filter(works).count();
    if count > 0 {
        let verb = if count == 1 { "works at its venue" } else { "work at their venues" };
        let orders = count_text(count, "order");
        print_note(&format!("tickpath: {orders} still {verb} after the end of the day; cancel those that should not"));
    }
}

/// Returns whether a request for the order is pending, or the order is in doubt.
pub fn is_pending(order: &ExecutionReport) -> bool {
    let pending = [OrdStatus::PendingCancel, OrdStatus::PendingNew, OrdStatus::PendingReplace, OrdStatus::Unknown];
    OrdStatus::from_code(order.status).is_some_and(|status| pending.contains(&status))
}

fn resolution(text: &str) -> Result<OrdStatus, String> {
    let words = [
        ("filled", OrdStatus::Filled),
        ("canceled", OrdStatus::Canceled),
        ("rejected", OrdStatus::Rejected),
        ("expired", OrdStatus::Expired),
        ("working", OrdStatus::New),
    ];
    one_of(text, &words)
}

fn reason(text: &str) -> Result<Reason, String> {
    let (mut bytes, text) = ([0; 32], text.trim().as_bytes());
    if text.is_empty() || text.len() > bytes.len() || text.contains(&0) {
        return Err("write 1 to 32 bytes of text: the operator's name and the reason".to_owned());
    }
    bytes[..text.len()].copy_from_slice(text);
    Ok(Reason(bytes))
}

fn day(text: &str) -> Result<u32, String> {
    let day = text.parse::<u32>().ok().filter(|_| text.len() == 8);
    day.filter(|&day| is_date(day)).ok_or_else(|| "write the day like 20261122".to_owned())
}

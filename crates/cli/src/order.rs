//! `tickpath order`: a new order, a cancel, a replace, a mass cancel, over a session of a user. The query of an
//! order's status: `status.rs`.
//!
//! ```text
//!   tickpath order new BTCUSDT buy 1 61800.1        from the folder of oms.toml, as the user 'trader'
//!   3986132071943766.12 session=0 client_order_id=… new leaves=1 …
//!   tickpath order new BTCUSDT buy 1 65010 --when 'BTCUSDT last >= 65000'
//!   3986132071943766.13 session=0 client_order_id=… pending_new armed leaves=1 …
//! ```

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Subcommand};
use tickpath_clock::{Clock, HostClock, utc_ns};
use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ConditionalOrder, ExecType, ExecutionReport, ExtendedOrder, MassCancel,
    MassCancelType, NewOrder, OrdStatus, OrderDenied, OrderId, OrderType, Price, Quantity, ReplaceConditional,
    ReplaceOrder, Request, SelfTradeMode, Side, StatusRequest, SymbolId, TextId, TextIdAction, TextIdRequest,
    TimeInForce, TradeMode, Trigger,
};
use tickpath_oms_client::{Client, ClientError, ClientEvent, Config as ClientConfig, Since};
use tickpath_oms_core::Denial;
use tickpath_oms_protocol::LogonRejectReason;
use tickpath_oms_text::parse::{
    client_id, order_id, price, quantity, self_trade_mode, side, time_in_force, trade_mode, utc_time,
};
use tickpath_oms_text::{denial_line, detail_line, report_line};

use crate::instruments::Instruments;
use crate::oms_files::PartialSettings;
use tickpath_cli_terminal::args::{CliUsageError, UnansweredError};
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{Printer, print_note};

const EXIT_CODES: &str = "\
Exit codes: 0 the venue has accepted the request, or the order is armed; 1 the OMS or the venue has rejected the \
request, or it was never sent; 5 no answer has arrived in time, or the order is in doubt: it may still work or fill. \
`tickpath orders` shows its state; 2 bad usage. A mass cancel without an order to cancel ends with 0.";

const STATUS_EXIT_CODES: &str = "\
Exit codes: 0 the OMS knows the state of the order; 1 there is no such order, or the user may not see it, or the venue \
cannot be queried; 5 the order is in doubt, or no answer has arrived in time; 2 bad usage.";

/// Remedies behind the denial of an order that the session does not have.
pub const LOOK_UP: &str = "look it up with `tickpath orders`, and give --session or --order-id\n";
const LOOK_UP_SESSION: &str = "look it up with `tickpath orders`, and give its --session\n";

const WHEN_HELP: &str = "\
Condition before the order is sent: NAME last|bid|ask >=|<= PRICE, one condition, or two joined by 'and' or 'or'

  --when 'BTCUSDT last >= 65000'
  --when 'BTCUSDT bid <= 60000 or ETHUSDT ask >= 3000'

The order waits at the OMS, armed, and the venue does not receive it. It fires once, with the first tick at which the \
trigger holds: last is the price of the last trade, bid and ask are those of the last top of book, and of two \
conditions joined by 'and' both must hold by the latest price of each. A trigger that already holds fires at once, \
with the last tick that the OMS has received; after a start of the OMS its next tick decides. All pre-trade checks are \
made when the order fires: a failed check denies the order. Until then the order counts among the account's open \
orders, and not in its position and credit.

An armed order survives any restart of the OMS. `order replace` changes it, with another trigger or without, and it is \
canceled like any order, also at the end of the day unless it is a gtc order. The OMS needs ticks: the topic 'ticks' \
in its file.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXIT_CODES)]
pub struct OrderCommandArgs {
    #[command(subcommand)]
    pub command: OrderCommand,
}

/// Address of the OMS, and the login of the user.
#[derive(Debug, Clone, Args)]
pub struct LoginArgs {
    /// Configuration file of the OMS, for its address and instruments; not needed with --oms and --password-file
    #[arg(long, value_name = "FILE", default_value = "oms.toml")]
    pub config: PathBuf,
    /// Address of the OMS: unix:///PATH, tcp://HOST:PORT or tls://HOST:PORT?ca=FILE; default: the address in its file
    #[arg(long, value_name = "URL")]
    pub oms: Option<String>,
    /// Name of the user
    #[arg(long, value_name = "NAME", default_value = "trader")]
    pub user: String,
    /// File whose first line is the password; default: NAME.password beside the OMS's file
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Session of the user; default: a free one. `order cancel` and `order replace` need the session of the order
    #[arg(long, value_name = "N")]
    pub session: Option<u16>,
}

#[derive(Debug, Clone, Args)]
pub struct RequestArgs {
    #[command(flatten)]
    pub login: LoginArgs,
    /// Account of the order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub account: u32,
    /// Client order id of this request, above zero, unique in its day and session; default: the time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub id: Option<u64>,
    /// Time limit for the venue's answer, in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub wait: u32,
}

#[derive(Debug, Clone, Subcommand)]
pub enum OrderCommand {
    /// Send a limit order, or without a price a market order
    #[command(after_help = EXIT_CODES)]
    New {
        /// Name or number of the instrument
        symbol: String,
        /// buy or sell
        #[arg(value_parser = side)]
        side: Side,
        /// Quantity of the order
        #[arg(value_parser = quantity, allow_negative_numbers = true)]
        quantity: Quantity,
        /// Limit price; none for a market order
        #[arg(value_parser = price, allow_negative_numbers = true)]
        price: Option<Price>,
        /// Time in force: day, gtc, gtd, ioc or fok
        #[arg(long, value_name = "TIF", default_value = "day", value_parser = time_in_force)]
        tif: TimeInForce,
        /// End of a gtd order in UTC, like 2027-12-01T08:00:00Z: the OMS cancels the order then
        #[arg(long, value_name = "TIME", value_parser = utc_time, conflicts_with = "when")]
        until: Option<u64>,
        #[command(flatten)]
        instructions: InstructionArgs,
        /// Condition before the order is sent, 'NAME last|bid|ask >=|<= PRICE', one or two joined by 'and' or 'or'
        #[arg(long, value_name = "TRIGGER", long_help = WHEN_HELP)]
        when: Option<String>,
        /// Text id of the order, up to 36 printable characters, that no open order of the account has
        #[arg(long, value_name = "TEXT", value_parser = client_id, conflicts_with = "when")]
        client_id: Option<TextId>,
        #[command(flatten)]
        common: RequestArgs,
    },
    /// Cancel an order of the same session, or with --order-id or --client-id an order of any session
    #[command(after_help = EXIT_CODES)]
    Cancel {
        /// Client order id of the order
        #[arg(required_unless_present_any = ["order_id", "client_id"], conflicts_with_all = ["order_id", "client_id"])]
        original: Option<u64>,
        /// The OMS's id of the order, as `tickpath orders` prints it, for an order of any session
        #[arg(long, value_name = "EPOCH.N", value_parser = order_id, conflicts_with = "client_id")]
        order_id: Option<OrderId>,
        /// Text id of the order, for an order of any session: the account's latest order with this text id
        #[arg(long, value_name = "TEXT", value_parser = client_id)]
        client_id: Option<TextId>,
        #[command(flatten)]
        common: RequestArgs,
    },
    /// Replace the price and the total quantity of an order of the same session
    #[command(after_help = EXIT_CODES)]
    Replace {
        /// Client order id of the order
        original: u64,
        /// New total quantity, the filled quantity included
        #[arg(value_parser = quantity, allow_negative_numbers = true)]
        quantity: Quantity,
        /// New limit price; 0 for an armed market order
        #[arg(value_parser = price, allow_negative_numbers = true)]
        price: Price,
        /// New trigger of an armed order; default: its present trigger
        #[arg(long, value_name = "TRIGGER", long_help = WHEN_HELP)]
        when: Option<String>,
        #[command(flatten)]
        common: RequestArgs,
    },
    /// Cancel all orders of the session and account
    #[command(after_help = EXIT_CODES)]
    MassCancel {
        /// Cancel only orders of this instrument
        #[arg(long, value_name = "NAME")]
        symbol: Option<String>,
        #[command(flatten)]
        common: RequestArgs,
    },
    /// Print the state of an order of the same session, or with --order-id or --client-id of an order of any session
    #[command(after_help = STATUS_EXIT_CODES)]
    Status(StatusArgs),
}

/// Instructions of a new order to its venue.
#[derive(Debug, Clone, Args)]
pub struct InstructionArgs {
    /// Rest only: the venue rejects the order if it would trade at once
    #[arg(long)]
    post_only: bool,
    /// Only reduce the position
    #[arg(long)]
    reduce_only: bool,
    /// Self-trade prevention: cancel-maker, cancel-taker or cancel-both; default: as the account is set at the venue
    #[arg(long, value_name = "MODE", value_parser = self_trade_mode)]
    self_trade: Option<SelfTradeMode>,
    /// Margin of the order: cash, cross or isolated; default: as the instrument requires
    #[arg(long, value_name = "MODE", value_parser = trade_mode)]
    trade_mode: Option<TradeMode>,
}

impl InstructionArgs {
    /// Returns an order with these instructions and no other terms.
    fn order(&self) -> NewOrder {
        let post_only = if self.post_only { NewOrder::POST_ONLY } else { 0 };
        let reduce_only = if self.reduce_only { NewOrder::REDUCE_ONLY } else { 0 };
        NewOrder {
            instructions: post_only | reduce_only,
            self_trade_mode: self.self_trade.unwrap_or(SelfTradeMode::Default).code(),
            trade_mode: self.trade_mode.unwrap_or(TradeMode::Default).code(),
            ..NewOrder::default()
        }
    }
}

#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Client order id of the order
    #[arg(
        value_name = "CLIENT_ORDER_ID",
        required_unless_present_any = ["order_id", "client_id"],
        conflicts_with_all = ["order_id", "client_id"]
    )]
    pub original: Option<u64>,
    /// The OMS's id of the order, as `tickpath orders` prints it, for an order of any session
    #[arg(long, value_name = "EPOCH.N", value_parser = order_id, conflicts_with = "client_id")]
    pub order_id: Option<OrderId>,
    /// Text id of the order, for an order of any session: the account's latest order with this text id
    #[arg(long, value_name = "TEXT", value_parser = client_id)]
    pub client_id: Option<TextId>,
    /// Make the OMS query the venue now, and wait for the answer; for admins only
    #[arg(long)]
    pub ask_venue: bool,
    #[command(flatten)]
    pub common: RequestArgs,
}

impl StatusArgs {
    /// Returns the request for the state of the order that its session's id or its text id names.
    pub fn status_request(&self, id: ClientOrderId) -> Request {
        let account = AccountId(self.common.account);
        match self.client_id {
            Some(text_id) => by_text_id(id, account, text_id, TextIdAction::Status),
            None => Request::Status(StatusRequest {
                client_order_id: id,
                original: ClientOrderId(self.original.unwrap_or_default()),
                account,
                ..StatusRequest::default()
            }),
        }
    }
}

fn by_text_id(client_order_id: ClientOrderId, account: AccountId, text_id: TextId, action: TextIdAction) -> Request {
    let action = action.code();
    Request::ByTextId(TextIdRequest { client_order_id, account, text_id, action, ..TextIdRequest::default() })
}

pub fn run(args: &OrderCommandArgs) -> anyhow::Result<CliOutcome> {
    let common = args.command.common();
    let (settings, clock) = (common.login.read_settings(), HostClock::get()?);
    let id = ClientOrderId(common.id.unwrap_or_else(utc_ns));
    args.command.check()?;
    let mut client = common.login.connect(&settings, Since::Now)?;
    let instruments = match args.command.names_instrument() {
        true => Instruments::request(&mut client, &settings, common.wait)?,
        false => Instruments::from_table(&settings),
    };
    let request = args.command.request(&instruments, id)?;
    // The connection can be lost after the logon.
    if client.send(&request).is_err() {
        bail!("the connection was lost before the request was sent; run the command again");
    }
    let mut printer = Printer::default();
    let outcome = print_reports(&mut client, &clock, &request, u64::from(common.wait) * 1_000_000_000, &mut printer);
    client.close();
    printer.end(outcome)
}

impl OrderCommand {
    fn common(&self) -> &RequestArgs {
        match self {
            Self::New { common, .. }
            | Self::Cancel { common, .. }
            | Self::Replace { common, .. }
            | Self::MassCancel { common, .. } => common,
            Self::Status(args) => &args.common,
        }
    }

    /// Rejects a trigger that cannot be parsed and an end time that does not fit, before the program connects.
    fn check(&self) -> Result<(), CliUsageError> {
        if let Self::New { tif, until, .. } = self
            && (*tif == TimeInForce::GoodTillDate) != until.is_some()
        {
            return Err(CliUsageError(
                "an end time belongs to a gtd order; give --tif gtd and --until TIME".to_owned(),
            ));
        }
        let (Self::New { when: Some(when), .. } | Self::Replace { when: Some(when), .. }) = self else { return Ok(()) };
        tickpath_oms_text::trigger::read(when, |_| Ok::<_, CliUsageError>(SymbolId::default())).map(drop)
    }

    /// Returns whether the command names an instrument: only then the program requests the OMS's instruments.
    fn names_instrument(&self) -> bool {
        match self {
            Self::New { .. } => true,
            Self::Replace { when, .. } => when.is_some(),
            Self::MassCancel { symbol, .. } => symbol.is_some(),
            Self::Cancel { .. } | Self::Status(_) => false,
        }
    }

    fn request(&self, instruments: &Instruments<'_>, id: ClientOrderId) -> anyhow::Result<Request> {
        let account = AccountId(self.common().account);
        Ok(match self {
            Self::New { symbol, side, quantity, price, tif, until, instructions, when, client_id, .. } => {
                let order = NewOrder {
                    client_order_id: id,
                    price: price.unwrap_or_default(),
                    quantity: *quantity,
                    symbol: instruments.number(symbol)?,
                    account,
                    side: side.code(),
                    order_type: if price.is_some() { OrderType::Limit } else { OrderType::Market }.code(),
                    time_in_force: tif.code(),
                    ..instructions.order()
                };
                match (trigger(instruments, when.as_deref())?, client_id, until) {
                    (Some(trigger), ..) => Request::Conditional(ConditionalOrder { order, trigger }),
                    (None, None, None) => Request::New(order),
                    (None, ..) => {
                        let (text_id, expire_ns) = (client_id.unwrap_or_default(), until.unwrap_or_default());
                        Request::Extended(ExtendedOrder { order, expire_ns, text_id, ..ExtendedOrder::default() })
                    }
                }
            }
            Self::Cancel { client_id: Some(text_id), .. } => by_text_id(id, account, *text_id, TextIdAction::Cancel),
            Self::Cancel { original, order_id, .. } => Request::Cancel(CancelOrder {
                client_order_id: id,
                original: ClientOrderId(original.unwrap_or_default()),
                account,
                order_id: order_id.unwrap_or_default(),
                ..CancelOrder::default()
            }),
            Self::Replace { original, quantity, price, when, .. } => {
                let (client_order_id, original, price, quantity) = (id, ClientOrderId(*original), *price, *quantity);
                let replace =
                    ReplaceOrder { client_order_id, original, price, quantity, account, ..Default::default() };
                let armed =
                    ReplaceConditional { client_order_id, original, price, quantity, account, ..Default::default() };
                match trigger(instruments, when.as_deref())? {
                    Some(trigger) => Request::ReplaceConditional(ReplaceConditional { trigger, ..armed }),
                    None => Request::Replace(replace),
                }
            }
            Self::Status(args) => args.status_request(id),
            Self::MassCancel { symbol, .. } => Request::MassCancel(MassCancel {
                client_order_id: id,
                symbol: symbol.as_deref().map_or(Ok(SymbolId::default()), |name| instruments.number(name))?,
                account,
                cancel_type: if symbol.is_some() { MassCancelType::Symbol } else { MassCancelType::All }.code(),
                ..MassCancel::default()
            }),
        })
    }
}

impl LoginArgs {
    /// Reads the file of the OMS as far as it can be read.
    pub fn read_settings(&self) -> PartialSettings {
        PartialSettings::read(&self.config)
    }

    pub fn url(&self, settings: &PartialSettings) -> anyhow::Result<String> {
        self.oms.clone().map_or_else(|| settings.url(), Ok)
    }

    pub fn password_file(&self) -> PathBuf {
        let beside = || self.config.with_file_name(format!("{}.password", self.user));
        self.password_file.clone().unwrap_or_else(beside)
    }

    /// Logs in for requests.
    pub fn connect(&self, settings: &PartialSettings, since: Since) -> anyhow::Result<Client> {
        self.log_in(settings, since, false)
    }

    /// Logs in for a drop copy: the connection receives other sessions' reports and sends no requests.
    pub fn connect_drop_copy(&self, settings: &PartialSettings, since: Since) -> anyhow::Result<Client> {
        self.log_in(settings, since, true)
    }

    fn log_in(&self, settings: &PartialSettings, since: Since, drop_copy: bool) -> anyhow::Result<Client> {
        let (url, password) = (self.url(settings)?, read_password(&self.password_file())?);
        let config = ClientConfig {
            session: self.session,
            since,
            // A request belongs to its connection; a drop copy resumes.
            reconnect: drop_copy,
            drop_copy,
            ..ClientConfig::new(url, &self.user, password)
        };
        Client::connect(config).map_err(|error| match &error {
            ClientError::Address(_) => CliUsageError(error.to_string()).into(),
            ClientError::Refused { refusal: Some(LogonRejectReason::NotPermitted), .. } if drop_copy => {
                CliUsageError(error.to_string()).into()
            }
            ClientError::Refused { refusal: Some(LogonRejectReason::Password), .. } => anyhow::anyhow!(
                "the OMS refused: the user '{}' or the password is wrong; check --user and --password-file, or set a \
                 new one with `tickpath oms user passwd`",
                self.user
            ),
            _ => error.into(),
        })
    }
}

/// Time after the venue's answer in which further reports are still printed, in nanoseconds.
const FOLLOW_UP_NS: i64 = 100_000_000;

/// Prints the reports of the request until the venue has answered or the OMS has denied it. An answer that was
/// received decides the outcome, even if the connection or the output fails afterwards.
fn print_reports(
    client: &mut Client,
    clock: &HostClock,
    request: &Request,
    timeout_ns: u64,
    printer: &mut Printer,
) -> anyhow::Result<CliOutcome> {
    let (id, session) = (request.client_order_id(), client.welcome().session);
    let original = match request {
        // The reports of another session's order carry the id of this request only.
        Request::Cancel(cancel) if cancel.order_id.0 != 0 => id,
        Request::Cancel(cancel) => cancel.original,
        Request::Replace(replace) => replace.original,
        Request::ReplaceConditional(replace) => replace.original,
        _ => id,
    };
    let concerns_request = |report: &ExecutionReport| {
        [id, original].contains(&report.client_order_id) || matches!(request, Request::MassCancel(_))
    };
    let (from, mut outcome) = (clock.ticks(), None);
    let (mut ends, mut answered, mut shown) = (None, None, Vec::new());
    loop {
        // A fill that follows the answer at once is printed with it.
        let since = *answered.get_or_insert_with(|| clock.ticks());
        match outcome {
            None => answered = None,
            Some(_) if clock.ns_between(since, clock.ticks()) > FOLLOW_UP_NS => break,
            Some(_) => {}
        }
        client.wait(10_000_000);
        let polled = client.poll(|event| match event {
            ClientEvent::Report { report, .. } if concerns_request(&report) => {
                printer.print(&report_line(session, &report));
                shown.push(report.order_id);
                let answers = report.client_order_id == id || matches!(request, Request::MassCancel(_));
                outcome = outcome.take().or(answer_outcome(&report).filter(|_| answers));
            }
            ClientEvent::Detail { detail, .. } if shown.contains(&detail.order_id) => {
                printer.print(&detail_line(session, &detail));
            }
            ClientEvent::Denied { denial, .. } if denial.client_order_id == id => {
                outcome = Some(print_denial(session, request, &denial, printer));
            }
            ClientEvent::Disconnected { why } => ends = Some(why),
            _ => {}
        });
        if let Some(why) = ends.take().or(polled.err()) {
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
            let id = id.0;
            bail!(UnansweredError(format!(
                "it is not known whether the OMS has accepted request {id}; check `tickpath orders`: {why}"
            )));
        }
        let waited = clock.ns_between(from, clock.ticks());
        if outcome.is_none() && waited > timeout_ns as i64 {
            bail!(UnansweredError(format!(
                "the venue has not answered request {} within {} s, and may still; `tickpath orders` shows its state",
                id.0,
                timeout_ns / 1_000_000_000
            )));
        }
    }
    if let Some(CliOutcome::Unanswered) = outcome {
        print_note(
            "tickpath: the order is in doubt: the OMS queries the venue until it answers; see `tickpath order status`",
        );
    }
    Ok(outcome.unwrap_or(CliOutcome::Success))
}

/// Prints the denial of a request, and returns its outcome.
fn print_denial(session: u16, request: &Request, denial: &OrderDenied, printer: &mut Printer) -> CliOutcome {
    let is_unknown = denial.code == Denial::UnknownOrder.code();
    if let (Request::MassCancel(all), true) = (request, is_unknown) {
        let account = all.account.0;
        printer.print(&format!("nothing to cancel: session {session} has no such open order of account {account}\n"));
        return CliOutcome::Success;
    }
    printer.print(&denial_line(session, denial));
    if is_unknown {
        let is_cancel = matches!(request, Request::Cancel(_) | Request::ByTextId(_));
        printer.print(if is_cancel { LOOK_UP } else { LOOK_UP_SESSION });
    }
    CliOutcome::Lost
}

/// Returns the outcome that a venue's answer stands for; none if the report comes from the OMS itself. For an armed
/// order the OMS gives the final answer.
fn answer_outcome(report: &ExecutionReport) -> Option<CliOutcome> {
    if OrdStatus::from_code(report.status) == Some(OrdStatus::Armed) {
        return Some(CliOutcome::Success);
    }
    match ExecType::from_code(report.exec_type)? {
        ExecType::PendingNew | ExecType::PendingCancel | ExecType::PendingReplace | ExecType::Triggered => None,
        // The venue's answer is followed by the fill, if there is an immediate fill.
        _ if OrdStatus::from_code(report.status) == Some(OrdStatus::Unknown) => Some(CliOutcome::Unanswered),
        ExecType::Rejected | ExecType::CancelRejected => Some(CliOutcome::Lost),
        _ => Some(CliOutcome::Success),
    }
}

fn trigger(instruments: &Instruments<'_>, when: Option<&str>) -> Result<Option<Trigger>, CliUsageError> {
    when.map(|text| tickpath_oms_text::trigger::read(text, |name| instruments.number(name))).transpose()
}

/// Returns the first line of the password file.
pub fn read_password(file: &Path) -> anyhow::Result<String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        anyhow::anyhow!("cannot read the password file {name}: {error}; name it with --password-file FILE")
    })?;
    match text.lines().next() {
        None | Some("") => bail!("{name}: the password is empty; write it in the first line"),
        Some(password) => Ok(password.to_owned()),
    }
}

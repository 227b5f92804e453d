//! `tickpath oms reconcile VENUE`: the orders, fills and positions of a venue beside those of the OMS.
//!
//! ```text
//!   tickpath oms reconcile SIM --reason 'anna: fills are missing'
//!   order 3474042.12 of session 2: in the OMS new, 0 filled, 1 open; at the venue filled, 1 filled, 0 open; …
//!   record 4712: venue SIM has reported 20 orders; 1 differed, 0 are not settled; 3 positions agree, 0 differ
//! ```

use anyhow::bail;
use clap::Args;
use tickpath_clock::utc_ns;
use tickpath_market::{ClientOrderId, ExecutionReport, OrderType, Quantity, SymbolId, TimeInForce, VenueId};
use tickpath_oms_core::{EnterOrder, QueryStatus, Reconcile, RecordKind};
use tickpath_oms_protocol::Query;
use tickpath_oms_text::{ReconciliationPair, order_state};
use zerocopy::IntoBytes;

use crate::admin::{AdminConnection, OperatorArgs, is_pending};
use tickpath_cli_terminal::args::bail_usage;
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{print_note, print_text};

#[derive(Debug, Clone, Args)]
pub struct ReconcileArgs {
    /// Name or number of the venue
    pub venue: String,
    /// Enter the orders of --account that are open at the venue and unknown to the OMS, as day orders of --session
    #[arg(long, requires = "account", requires = "session")]
    pub take: bool,
    /// Account whose orders are entered
    #[arg(long, value_name = "N", requires = "take")]
    pub account: Option<u32>,
    /// Session that owns the entered orders
    #[arg(long, value_name = "N", requires = "take")]
    pub session: Option<u16>,
    #[command(flatten)]
    pub operator: OperatorArgs,
}

pub fn run(args: &ReconcileArgs) -> anyhow::Result<CliOutcome> {
    let settings = args.operator.admin.login().read_settings();
    let venue = settings.venue(&args.venue).or_else(|| args.venue.parse().ok().map(VenueId));
    let Some(venue) = venue else {
        let names: Vec<&str> = settings.venues.iter().map(|(_, name)| name.as_str()).collect();
        if !names.is_empty() {
            bail_usage!("no venue is called '{}'; the file of the OMS names {}", args.venue, names.join(", "));
        }
        bail!(settings.missing_part(&format!("the number of the venue '{}'", args.venue), "it in place of the name"))
    };
    let mut connection = args.operator.admin.connect(&settings)?;
    let instruments = connection.instruments(&settings)?;
    let name = |symbol: SymbolId| instruments.name(symbol).unwrap_or_else(|| symbol.0.to_string());
    let outcome = compare(&mut connection, args, venue, name);
    connection.client.close();
    outcome
}

/// Makes the OMS query the venue, settles the differences that can be settled, and prints all differences.
fn compare(
    connection: &mut AdminConnection,
    args: &ReconcileArgs,
    venue: VenueId,
    name: impl Fn(SymbolId) -> String,
) -> anyhow::Result<CliOutcome> {
    let command = Reconcile { venue, reason: args.operator.reason.0, ..Reconcile::default() };
    let (record, _) = connection.send_command(RecordKind::Reconcile, command.as_bytes())?;
    let rows = connection.await_venue_answer(record)?;
    let Some(((_, last), pairs)) = rows.split_first() else { bail!("the OMS has sent an answer without a row") };
    if last.reason != 0 {
        bail!(
            "venue {} has refused to list its orders, by reason {}; query single orders with: tickpath order status \
             --ask-venue",
            args.venue,
            last.reason
        );
    }
    let (mut text, mut listed, mut left, mut entered, mut agree, mut differ) = (String::new(), 0, 0, 0, 0, 0);
    for found in pairs.chunks_exact(2).map(|pair| ReconciliationPair::of(pair[0], pair[1].1)) {
        let Some(line) = found.line(&name) else {
            agree += 1;
            continue;
        };
        text.push_str(&line);
        let (is_settled, more) = match found {
            ReconciliationPair::Position(..) => {
                differ += 1;
                (true, String::new())
            }
            ReconciliationPair::Order(_, order, _) => query_state(connection, &order),
            ReconciliationPair::NotReported(_, order) => query_venue(connection, &order),
            ReconciliationPair::Foreign(report) => enter_order(connection, args, venue, &report),
        };
        entered +=
            u64::from(is_settled && matches!(found, ReconciliationPair::Foreign(order) if order.leaves_quantity.0 > 0));
        listed += u64::from(!matches!(found, ReconciliationPair::Position(..)));
        left += u64::from(!is_settled);
        text.push_str(&format!("{more}\n"));
    }
    let (orders, differing, venue) = (last.venue_sequence, last.exec_id.0, &args.venue);
    print_text(&format!(
        "{text}record {record}: venue {venue} has reported {orders} orders; {differing} differed, {left} are not settled; {agree} \
         positions agree, {differ} differ\n"
    ))?;
    if differing > listed {
        print_note(&format!(
            "tickpath: the first {listed} differences are shown; run the command again for the others"
        ));
    }
    if differ > 0 && entered > 0 {
        print_note(
            "tickpath: positions were compared before the orders were entered; run the command again to compare them",
        );
    }
    let is_whole = left == 0 && differing == listed && differ == 0;
    Ok(if is_whole { CliOutcome::Success } else { CliOutcome::Lost })
}

/// Queries the OMS for an order: returns whether its state is final, and the text for it.
fn query_state(connection: &mut AdminConnection, order: &ExecutionReport) -> (bool, String) {
    match connection.query(Query::ORDER, order.order_id.0).map(|rows| rows.first().copied()) {
        Ok(Some((_, now))) => (!is_pending(&now), format!("; now {}", order_state(&now))),
        Ok(None) => (true, "; removed at the end of its day".to_owned()),
        Err(why) => (false, format!("; {why}")),
    }
}

/// Makes the OMS query the venue for an order that the venue has not reported: the venue may have received the order
/// after the first query.
fn query_venue(connection: &mut AdminConnection, order: &ExecutionReport) -> (bool, String) {
    let query = QueryStatus { order: order.order_id.0, ..QueryStatus::default() };
    let answer = connection
        .send_command(RecordKind::QueryStatus, query.as_bytes())
        .and_then(|(record, _)| connection.await_venue_answer(record));
    match answer {
        Ok(_) => query_state(connection, order),
        Err(why) => (false, format!("; {why}")),
    }
}

/// Enters an order that the OMS does not know, if `--take` is given. An order without open quantity is left out.
fn enter_order(
    connection: &mut AdminConnection,
    args: &ReconcileArgs,
    venue: VenueId,
    report: &ExecutionReport,
) -> (bool, String) {
    let is_over = report.leaves_quantity.0 == 0;
    let Some(session) = args.session.filter(|_| !is_over && args.account == Some(report.account.0)) else {
        return (is_over, String::new());
    };
    let enter = EnterOrder {
        client_order_id: ClientOrderId(utc_ns()),
        sent_as: report.order_id,
        venue_order_id: report.venue_order_id,
        price: report.price,
        quantity: Quantity(report.cumulative_quantity.0.saturating_add(report.leaves_quantity.0)),
        symbol: report.symbol,
        account: report.account,
        venue,
        session,
        side: report.side,
        order_type: if report.price.0 == 0 { OrderType::Market } else { OrderType::Limit }.code(),
        time_in_force: TimeInForce::Day.code(),
        reason: args.operator.reason.0,
        ..EnterOrder::default()
    };
    match connection.send_command(RecordKind::EnterOrder, enter.as_bytes()) {
        Ok((record, _)) => (true, format!("; entered by record {record} for session {session}")),
        Err(why) => (false, format!("; not entered: {why}")),
    }
}

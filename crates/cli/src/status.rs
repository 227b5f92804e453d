//! `tickpath order status`: the state of an order at the OMS, or once its venue has answered.
//!
//! ```text
//!   tickpath order status 7 --session 2
//!   3986132071943766.12 session=2 client_order_id=7 order_status new side=buy leaves=1 filled=0 last=0@0
//!   tickpath order status --order-id 3986132071943766.12 --ask-venue --user admin
//! ```

use anyhow::bail;
use tickpath_clock::utc_ns;
use tickpath_market::{ClientOrderId, ExecutionReport, OrdStatus, OrderId};
use tickpath_oms_client::{ClientEvent, Since};
use tickpath_oms_core::{Denial, QueryStatus, RecordKind};
use tickpath_oms_protocol::Query;
use tickpath_oms_text::{denial_line, report_line};
use zerocopy::IntoBytes;

use crate::admin::{AdminConnection, SessionOrder};
use crate::order::{LOOK_UP, StatusArgs};
use tickpath_cli_terminal::args::UnansweredError;
use tickpath_cli_terminal::outcome::CliOutcome;
use tickpath_cli_terminal::print::{print_note, print_text};

pub fn run(args: &StatusArgs) -> anyhow::Result<CliOutcome> {
    let login = &args.common.login;
    let mut connection = AdminConnection::new(login.connect(&login.read_settings(), Since::Now)?, args.common.wait)?;
    if args.ask_venue {
        connection = connection.require_admin(&login.user)?;
    }
    let outcome = print_status(&mut connection, args);
    connection.client.close();
    outcome
}

/// Finds the order, makes the OMS query its venue if requested, and prints the order's state.
fn print_status(connection: &mut AdminConnection, args: &StatusArgs) -> anyhow::Result<CliOutcome> {
    let found = match args.order_id {
        Some(order) => find_by_order_id(connection, order)?,
        None => find_in_session(connection, args)?,
    };
    let Some((session, mut report)) = found else { return Ok(CliOutcome::Lost) };
    if args.ask_venue {
        let query = QueryStatus { order: report.order_id.0, ..QueryStatus::default() };
        let (record, _) = connection.send_command(RecordKind::QueryStatus, query.as_bytes())?;
        connection.await_venue_answer(record)?;
        let Some((_, now)) = find_by_order_id(connection, report.order_id)? else { return Ok(CliOutcome::Lost) };
        report = now;
    }
    print_text(&report_line(session, &report))?;
    if report.status == OrdStatus::Unknown.code() {
        print_note(
            "tickpath: the order is in doubt: the OMS queries the venue until it answers, or an admin resolves it",
        );
        return Ok(CliOutcome::Unanswered);
    }
    Ok(CliOutcome::Success)
}

/// Returns the order with this id of the OMS; prints a line if it does not exist or the user may not see it.
fn find_by_order_id(connection: &mut AdminConnection, order: OrderId) -> anyhow::Result<Option<SessionOrder>> {
    let found = connection.query(Query::ORDER, order.0).map_err(unanswered)?.first().copied();
    if found.is_none() {
        let id = tickpath_oms_text::order_id(order);
        print_text(&format!(
            "there is no order {id}, or this user may not see it; `tickpath orders` lists the open orders\n"
        ))?;
    }
    Ok(found)
}

/// Returns the order of the session by its client order id, or the order of the account by its text id; prints the
/// OMS's denial if there is none.
fn find_in_session(connection: &mut AdminConnection, args: &StatusArgs) -> anyhow::Result<Option<SessionOrder>> {
    let (id, session) = (ClientOrderId(args.common.id.unwrap_or_else(utc_ns)), connection.client.welcome().session);
    if connection.client.send(&args.status_request(id)).is_err() {
        bail!("the connection was lost before the request was sent; run the command again");
    }
    let reply = connection.receive_until(|event| match event {
        ClientEvent::Report { report, .. } if report.client_order_id == id => Some(Ok(*report)),
        ClientEvent::Denied { denial, .. } if denial.client_order_id == id => Some(Err(*denial)),
        _ => None,
    });
    match reply.map_err(unanswered)?.0 {
        // An order found by its text id may be of another session, which the answer does not name.
        Ok(report) if args.client_id.is_some() => find_by_order_id(connection, report.order_id),
        // The answer carries the id of the request; the printed report gets the order's own client order id.
        Ok(report) => {
            let client_order_id = ClientOrderId(args.original.unwrap_or_default());
            Ok(Some((session, ExecutionReport { client_order_id, ..report })))
        }
        Err(denial) => {
            let remedy = if denial.code == Denial::UnknownOrder.code() { LOOK_UP } else { "" };
            print_text(&format!("{}{remedy}", denial_line(session, &denial))).map(|()| None)
        }
    }
}

fn unanswered(why: String) -> UnansweredError {
    UnansweredError(format!("the state of the order is not known: {why}; run the command again"))
}

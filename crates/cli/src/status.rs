//! `tickpath order status`: the state of an order at the OMS, or once its venue has answered.
//!
//! ```text
//!   tickpath order status 7 --session 2
//!   3986132071943766.12 session=2 client_order_id=7 order_status new side=buy leaves=1 filled=0 last=0@0
//!   tickpath order status --order-id 3986132071943766.12 --ask-venue --user admin
//! ```

use anyhow::bail;
use tickpath_clock::utc_ns;
use tickpath_market::{ClientOrderId, ExecutionReport, OrdStatus, OrderId, Request};
use tickpath_oms_client::{Event, Since};
use tickpath_oms_core::{Inquire, RecordKind};
use tickpath_oms_protocol::Query;
use tickpath_oms_text::{denial_line, report_line};
use zerocopy::IntoBytes;

use crate::args::Unanswered;
use crate::order::StatusArgs;
use crate::outcome::Outcome;
use crate::print::{note, say};
use crate::words::{Row, Talk};

pub fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    let whom = &args.common.whom;
    let mut talk = Talk::new(whom.connect(&whom.known(), Since::Now)?, args.common.wait)?;
    if args.ask_venue {
        talk = talk.require_admin(&whom.user)?;
    }
    let told = tell(&mut talk, args);
    talk.client.close();
    told
}

/// Finds the order, makes the OMS query its venue if requested, and prints the order's state.
fn tell(talk: &mut Talk, args: &StatusArgs) -> anyhow::Result<Outcome> {
    let found = match args.order_id {
        Some(order) => by_id(talk, order)?,
        None => of_session(talk, args)?,
    };
    let Some((session, mut report)) = found else { return Ok(Outcome::Lost) };
    if args.ask_venue {
        let inquire = Inquire { order: report.order_id.0, ..Inquire::default() };
        let (record, _) = talk.word(RecordKind::Inquire, inquire.as_bytes())?;
        talk.answer(record)?;
        let Some((_, now)) = by_id(talk, report.order_id)? else { return Ok(Outcome::Lost) };
        report = now;
    }
    say(&report_line(session, &report))?;
    if report.status == OrdStatus::Unknown.code() {
        note("tickpath: the order is in doubt: its venue is asked until it answers, or an admin resolves the order");
        return Ok(Outcome::Unanswered);
    }
    Ok(Outcome::Good)
}

/// Returns the order with this id of the OMS; prints a line if it does not exist or the user may not see it.
fn by_id(talk: &mut Talk, order: OrderId) -> anyhow::Result<Option<Row>> {
    match talk.ask(Query::ORDER, order.0) {
        Ok(rows) => {
            let found = rows.first().copied();
            if found.is_none() {
                let id = tickpath_oms_text::order_id(order);
                say(&format!(
                    "there is no order {id}, or this user may not see it; `tickpath orders` lists those that are open\n"
                ))?;
            }
            Ok(found)
        }
        Err(why) => bail!(Unanswered(format!("how the order stands is not known: {why}"))),
    }
}

/// Returns the order of the session by its client order id; prints the OMS's denial if there is none.
fn of_session(talk: &mut Talk, args: &StatusArgs) -> anyhow::Result<Option<Row>> {
    let (id, session) = (ClientOrderId(args.common.id.unwrap_or_else(utc_ns)), talk.client.welcome().session);
    let question = args.question(id);
    if talk.client.send(&Request::Status(question)).is_err() {
        bail!("the connection was lost before the question was sent; run the command again");
    }
    let heard = talk.hear(|event| match event {
        Event::Report { report, .. } if report.client_order_id == id => Some(Ok(*report)),
        Event::Denied { denial, .. } if denial.client_order_id == id => Some(Err(*denial)),
        _ => None,
    });
    match (heard.found, heard.ended) {
        // The answer carries the id of the request; the printed report gets the order's own client order id.
        (Some(Ok(report)), _) => Ok(Some((session, ExecutionReport { client_order_id: question.original, ..report }))),
        (Some(Err(denial)), _) => say(&denial_line(session, &denial)).map(|()| None),
        (None, Some(why)) => bail!(Unanswered(format!("how the order stands is not known: {why}"))),
        (None, None) => bail!(Unanswered("the OMS has not answered in time; ask again".to_owned())),
    }
}

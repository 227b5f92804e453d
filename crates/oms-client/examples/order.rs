//! Sends one order to a running OMS, and prints its reports until the order has ended.
//!
//! ```text
//! cargo run -p tickpath-oms-client --example order -- DESK
//! ```
//! DESK is a folder with an OMS: `tickpath oms init && tickpath exchange init && tickpath exchange` in that folder
//! creates the files and runs a simulated exchange, and `tickpath oms` in a second terminal runs the OMS.

use std::error::Error;
use std::fs;

use tickpath_clock::utc_ns;
use tickpath_market::{
    AccountId, ClientOrderId, ExecutionReport, NewOrder, OrdStatus, OrderType, Request, Side, SymbolId, TimeInForce,
};
use tickpath_oms_client::{Client, ClientEvent, Config};

fn main() -> Result<(), Box<dyn Error>> {
    let desk = std::env::args().nth(1).ok_or("give the folder of an OMS: order DESK")?;
    let desk = fs::canonicalize(desk)?;
    let password = fs::read_to_string(desk.join("trader.password"))?;
    let url = format!("unix://{}", desk.join("oms.sock").display());
    let mut client = Client::connect(Config::new(url, "trader", password.trim()))?;

    let order = NewOrder {
        client_order_id: ClientOrderId(utc_ns()),
        // BTCUSDT in the instruments.csv that `init` writes.
        symbol: SymbolId(1),
        account: AccountId(1),
        price: "61800.1".parse()?,
        quantity: "1".parse()?,
        side: Side::Buy.code(),
        order_type: OrderType::Limit.code(),
        time_in_force: TimeInForce::ImmediateOrCancel.code(),
        ..NewOrder::default()
    };
    client.send(&Request::New(order))?;

    let mut has_ended = false;
    while !has_ended {
        client.wait(1_000_000_000);
        client.poll(|event| has_ended |= print_event(&order, &event))?;
    }
    client.close();
    Ok(())
}

/// Prints an event. Returns true if it ends the order.
fn print_event(order: &NewOrder, event: &ClientEvent) -> bool {
    use OrdStatus::{Canceled, Expired, Filled, Rejected};
    match event {
        ClientEvent::Report { number, report, .. } if report.client_order_id == order.client_order_id => {
            let ExecutionReport { cumulative_quantity: filled, leaves_quantity: open, last_price: price, .. } = report;
            let status = OrdStatus::from_code(report.status).unwrap_or(OrdStatus::Unknown);
            println!("report {number}: {status:?}, filled {filled}, open {open}, last price {price}");
            matches!(status, Filled | Canceled | Expired | Rejected)
        }
        ClientEvent::Denied { denial, .. } if denial.client_order_id == order.client_order_id => {
            println!("denied by the OMS with code {}; docs/risk-checks.md lists the codes", denial.code);
            true
        }
        ClientEvent::NotTaken { .. } | ClientEvent::InDoubt { .. } => {
            println!("{event:?}");
            true
        }
        other => {
            println!("{other:?}");
            false
        }
    }
}

//! Orders with a trigger over a real socket: armed, changed, kept over a restart, fired and filled.

use tickpath_market::{
    CancelOrder, Condition, ConditionalOrder, ReplaceConditional, TimeInForce, Trigger, TriggerDirection,
    TriggerPriceType,
};
use tickpath_oms_client::Since;

use super::sessions::OmsFixture;
use super::*;

fn bid_reaches(price: i64) -> Trigger {
    Trigger::on(Condition {
        price: Price::from_whole(price),
        symbol: SymbolId(0),
        price_type: TriggerPriceType::Bid.code(),
        direction: TriggerDirection::Up.code(),
        reserved: [0; 2],
    })
}

fn armed(id: u64, price: i64, trigger: Trigger) -> Request {
    let order = NewOrder { time_in_force: TimeInForce::GoodTillCancel.code(), ..limit(Side::Buy, id, price, 1) };
    Request::Conditional(ConditionalOrder { order, trigger })
}

#[test]
fn an_armed_order_is_replaced_survives_a_restart_fires_and_fills() {
    for layout in [Layout::Inline, Layout::Split] {
        let mut oms = OmsFixture::new(layout);
        let mut client = oms.remote("anna", Since::Start);
        client.send(armed(1, 112, bid_reaches(105)));
        client.await_reports(1);
        client.send(Request::ReplaceConditional(ReplaceConditional {
            client_order_id: ClientOrderId(2),
            original: ClientOrderId(1),
            price: Price::from_whole(113),
            quantity: Quantity::from_whole(2),
            account: WIDE,
            trigger: bid_reaches(110),
            ..ReplaceConditional::default()
        }));
        client.await_reports(2);
        oms.tick(106, 107);
        let status = client.status();
        assert_eq!((status.queued, status.working), (1, 0), "its first trigger holds no more");
        oms.stop();
        oms.start();
        client.connects(2);
        client.send(armed(3, 112, bid_reaches(300)));
        client.await_reports(3);
        oms.tick(110, 111);
        client.await_reports(6);
        let sentence = client.reported();
        let expected = [
            (1, ExecType::PendingNew, OrdStatus::Armed),
            (2, ExecType::Replaced, OrdStatus::Armed),
            (3, ExecType::PendingNew, OrdStatus::Armed),
            (1, ExecType::Triggered, OrdStatus::PendingNew),
            (1, ExecType::New, OrdStatus::New),
            (1, ExecType::Trade, OrdStatus::Filled),
        ];
        assert_eq!(sentence, expected, "{layout}");
        client.send(Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(4),
            original: ClientOrderId(3),
            account: WIDE,
            ..CancelOrder::default()
        }));
        client.await_reports(7);
        assert_eq!(client.reported()[6], (4, ExecType::Canceled, OrdStatus::Canceled));
        oms.stop();
        oms.start();
        oms.tick(110, 111);
        let mut other = oms.remote("anna", Since::Now);
        let status = other.status();
        assert_eq!((status.queued, status.sending, status.done), (0, 0, 2), "nothing fires twice");
    }
}

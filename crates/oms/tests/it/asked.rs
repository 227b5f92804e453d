//! Questions that an admin has a venue asked: the answer is there once the venue has sent it, and not before.

use tickpath_orders::{Inquire, RecordKind};

use super::*;

#[test]
fn the_answer_to_an_admins_question_is_kept_for_the_admin() {
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    scene.tick(99, 101);
    let (mut venue, mut client) = (scene.venue(), scene.client(0));
    settle(&mut oms, &mut venue);
    client.send(limit(Side::Buy, 1, 90, 1));
    settle(&mut oms, &mut venue);
    let order = oms.sequencer().core().order_of(0, ClientOrderId(1)).expect("the order works").id;
    let inquire = Inquire { order: order.0, ..Inquire::default() };
    let now = scene.clock.ticks();
    let word = oms.sequencer().word(now, RecordKind::Inquire.code(), inquire.as_bytes()).expect("the OMS goes on");
    let record = word.expect("the venue can be asked").record;
    assert!(oms.sequencer().answer(record).is_none(), "the venue has not had its turn");
    settle(&mut oms, &mut venue);
    let answer = oms.sequencer().answer(record).expect("the venue has answered").last;
    assert_eq!((answer.order_id, answer.status), (order, OrdStatus::New.code()));
    assert!(oms.sequencer().answer(record + 1).is_none(), "no question has that record");
}

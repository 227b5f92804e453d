//! Positions that an admin enters at a running OMS: checked before they are journaled, and present after every start.

use tickpath_oms_core::{AdminCommandError, EnterPosition, RecordKind};
use tickpath_oms_runtime::CommandError;

use super::*;

fn enter(oms: &mut Inline<SimulatedClock>, scene: &Scene, enter: EnterPosition) -> Result<u64, CommandError> {
    let applied =
        oms.sequencer().accept_command(scene.clock.ticks(), RecordKind::EnterPosition.code(), enter.as_bytes());
    applied.expect("the disk is sound").map(|applied| applied.record)
}

#[test]
fn a_position_is_entered_at_the_reference_price_and_outlives_starts() {
    let mut scene = Scene::new();
    let mut oms = scene.oms();
    let short = EnterPosition { quantity: Quantity::from_whole(-5), account: TIGHT, ..EnterPosition::default() };
    let position = EnterPosition { reason: *b"anna: from the clearing report..", ..short };
    let records = oms.sequencer().records();
    let refused =
        |why: &CommandError, expected: AdminCommandError| matches!(why, CommandError::Core(why) if *why == expected);
    let why = enter(&mut oms, &scene, position).expect_err("there is no price");
    assert!(refused(&why, AdminCommandError::Unpriced(0)), "{why}");
    scene.tick(99, 101);
    poll(&mut oms);
    let why = enter(&mut oms, &scene, short).expect_err("there is no reason");
    assert!(refused(&why, AdminCommandError::Reason), "{why}");
    assert_eq!(oms.sequencer().records(), records, "what is refused is not journaled");
    enter(&mut oms, &scene, position).expect("it is defined and priced");
    let net = |oms: &mut Inline<SimulatedClock>| oms.sequencer().core().position(TIGHT, SymbolId(0)).net;
    assert_eq!(net(&mut oms), -500_000_000);
    let (core, inputs, _) = scene.replay();
    let price = inputs.iter().find_map(|input| match input {
        Input::EnterPosition(entered) => Some(entered.price),
        _ => None,
    });
    assert!(price.is_some_and(|price| (99..=101).contains(&(price.0 / 100_000_000))), "{price:?}");
    assert_eq!(core.digest(), oms.sequencer().core().digest());
    drop(oms);
    let mut oms = scene.oms();
    assert_eq!(net(&mut oms), -500_000_000);
}

//! Positions that an admin enters by hand: they count in limits and in the day's profit, and outlive a snapshot and a
//! day.

use tickpath_market::{AccountId, ExecutionReport, Price, Quantity, Side, SymbolId};
use tickpath_oms_core::{AccountLimits, AdminCommandError, Denial, EnterPosition, Input};

use crate::admin_command::loaded;
use crate::scene::{ACCOUNT, SYMBOL, Scene, fill, wide};

const REASON: [u8; 32] = *b"anna: from the clearing report..";

fn entered(quantity: i64, price: i64) -> EnterPosition {
    EnterPosition {
        quantity: Quantity(quantity),
        price: Price(price),
        account: ACCOUNT,
        symbol: SYMBOL,
        reason: REASON,
        ..EnterPosition::default()
    }
}

fn adjusted(quantity: i64, price: i64) -> EnterPosition {
    EnterPosition { adjusts: 1, ..entered(quantity, price) }
}

impl Scene {
    fn enter(&mut self, enter: EnterPosition) {
        assert_eq!(self.core.validate(&Input::EnterPosition(enter)), Ok(()));
        let ignored = self.counts().ignored;
        self.apply(Input::EnterPosition(enter));
        assert_eq!((self.out.len(), self.counts().ignored), (0, ignored), "it is no report to anybody");
    }

    fn refuses(&mut self, enter: EnterPosition, why: AdminCommandError) {
        assert_eq!(self.core.validate(&Input::EnterPosition(enter)), Err(why));
        let (net, ignored) = (self.position().net, self.counts().ignored);
        self.apply(Input::EnterPosition(enter));
        assert_eq!((self.position().net, self.counts().ignored), (net, ignored + 1), "{why}");
    }
}

#[test]
fn an_entered_position_counts_in_the_limit_of_positions() {
    let mut scene = Scene::with(AccountLimits { max_position: Quantity(10), ..wide() });
    scene.enter(entered(8, 100));
    assert_eq!(scene.position().net, 8);
    scene.order(1, Side::Buy, 100, 3);
    assert_eq!(scene.denial(), Some((Denial::Position, 10, 11)));
    scene.order(2, Side::Buy, 100, 2);
    assert_eq!(scene.denial(), None);
    scene.order(3, Side::Sell, 100, 18);
    assert_eq!(scene.denial(), None, "from eight bought to ten sold");
    scene.order(4, Side::Sell, 100, 1);
    assert_eq!(scene.denial(), Some((Denial::Position, 10, 11)));
}

#[test]
fn the_profit_of_an_entered_position_counts_from_its_price() {
    for (price, denial) in [(110, Some((Denial::DailyLoss, 50, 100))), (104, None)] {
        let mut scene = Scene::with(AccountLimits { max_loss: 50_i128.to_le_bytes(), ..wide() });
        scene.enter(entered(10, price));
        scene.order(1, Side::Buy, 100, 1);
        assert_eq!(scene.denial(), denial, "ten that count from {price} are worth 100 each");
    }
    // A change without a price counts from the latest price, so its value equals its cost.
    let mut scene = Scene::with(AccountLimits { max_loss: 50_i128.to_le_bytes(), ..wide() });
    scene.order(1, Side::Buy, 90, 1);
    scene.enter(adjusted(1_000, 0));
    scene.order(2, Side::Buy, 100, 1);
    assert_eq!(scene.denial(), None);
    scene.reference = Price(99);
    scene.order(3, Side::Buy, 99, 1);
    assert_eq!(scene.denial(), Some((Denial::DailyLoss, 50, 1_000)));
}

#[test]
fn opening_positions_precede_fills_and_adjustments_come_any_time() {
    let mut scene = Scene::new();
    let unknown = AccountId(8);
    for (enter, why) in [
        (EnterPosition { reason: [0; 32], ..entered(5, 100) }, AdminCommandError::Reason),
        (
            EnterPosition { account: unknown, ..entered(5, 100) },
            AdminCommandError::Undefined { account: 8, symbol: SYMBOL.0 },
        ),
        (
            EnterPosition { symbol: SymbolId(9), ..entered(5, 100) },
            AdminCommandError::Undefined { account: ACCOUNT.0, symbol: 9 },
        ),
        (entered(5, 0), AdminCommandError::Unpriced(SYMBOL.0)),
        (entered(0, 100), AdminCommandError::NoChange(Quantity(0))),
        (adjusted(0, 100), AdminCommandError::NoChange(Quantity(0))),
    ] {
        scene.refuses(enter, why);
    }
    scene.enter(entered(5, 100));
    scene.refuses(entered(5, 101), AdminCommandError::NoChange(Quantity(5)));
    scene.enter(entered(-7, 0));
    assert_eq!(scene.position().net, -7, "it is the position, and no change of it");
    let buy = scene.order(1, Side::Buy, 100, 10);
    scene.enter(entered(-8, 100));
    scene.report(ExecutionReport { last_price: Price(100), ..fill(buy, 1, 10, 10, 0) });
    assert_eq!(scene.position().net, 2);
    scene.refuses(entered(3, 100), AdminCommandError::Traded(ACCOUNT.0));
    scene.enter(adjusted(-3, 100));
    assert_eq!(scene.position().net, -1);
    // The next day begins with this position, and its start can be entered again.
    scene.apply(Input::DayEnd(Default::default()));
    assert_eq!(scene.position().net, -1);
    scene.enter(entered(4, 0));
    assert_eq!(scene.position().net, 4);
}

#[test]
fn a_snapshot_and_a_replay_keep_an_entered_position() {
    let act = |scene: &mut Scene| {
        scene.enter(entered(8, 110));
        scene.order(1, Side::Buy, 100, 1);
        scene.enter(adjusted(-2, 105));
    };
    let limits = AccountLimits { max_position: Quantity(10), max_loss: 50_i128.to_le_bytes(), ..wide() };
    let (mut scene, mut again) = (Scene::with(limits), Scene::with(limits));
    act(&mut scene);
    act(&mut again);
    assert_eq!(scene.core.digest(), again.core.digest());
    again.core = loaded(&scene.core);
    assert_eq!(again.position(), scene.position());
    for (id, side, quantity) in [(2, Side::Buy, 1), (3, Side::Sell, 20), (4, Side::Sell, 1)] {
        scene.order(id, side, 100, quantity);
        again.order(id, side, 100, quantity);
        assert_eq!(again.out.as_slice(), scene.out.as_slice(), "order {id}");
    }
    assert_eq!(again.core.digest(), scene.core.digest());
}

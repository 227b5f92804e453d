//! Balances, reservations, states and fills under random requests.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_market::{OrderType, Price, Quantity, Side, TimeInForce};
use tickpath_venue_sim_web::desk::{
    DeskEvent, DeskState, NewDeskOrder, OrderName, SimDesk, SimDeskConfig, SimInstrument,
};

use crate::desk_setup::{SPOT, config, quantity};

const UNIT: i128 = 100_000_000;
const TIMES: [TimeInForce; 3] = [TimeInForce::GoodTillCancel, TimeInForce::ImmediateOrCancel, TimeInForce::FillOrKill];

/// A request with random parts.
#[derive(Debug, Clone)]
enum Step {
    Place { account: usize, is_buy: bool, is_market: bool, time: usize, post_only: bool, price: i64, quantity: i64 },
    Cancel { account: usize, pick: usize },
    Amend { account: usize, pick: usize, price: Option<i64>, quantity: Option<i64> },
    CancelAll { account: usize },
    Quote { bid: i64, spread: i64, size: i64 },
}

fn prices() -> std::ops::Range<i64> {
    9_000_000_000..11_000_000_000
}

fn step() -> impl Strategy<Value = Step> {
    let account = 0..2_usize;
    let quantities = 1..300_000_000_i64;
    let terms = (account.clone(), any::<[bool; 2]>(), 0..10_usize, 0..3_usize, prices(), quantities.clone());
    let place = terms.prop_map(|(account, [is_buy, post_only], market, time, price, quantity)| {
        let is_market = market == 0;
        let (price, post_only) = if is_market { (0, false) } else { (price, post_only) };
        Step::Place { account, is_buy, is_market, time, post_only, price, quantity }
    });
    let amended = (account.clone(), 0..8_usize, prop::option::of(prices()), prop::option::of(quantities.clone()));
    prop_oneof![
        8 => place,
        2 => (account.clone(), 0..8_usize).prop_map(|(account, pick)| Step::Cancel { account, pick }),
        3 => amended.prop_map(|(account, pick, price, quantity)| Step::Amend { account, pick, price, quantity }),
        1 => account.prop_map(|account| Step::CancelAll { account }),
        2 => (prices(), 1..1_000_000_000_i64, quantities).prop_map(|(bid, spread, size)| Step::Quote { bid, spread, size }),
    ]
}

/// Returns an instrument with the finest steps, so that amounts are rounded, and without quotes.
fn fine(maker_fee_e6: i64) -> SimDeskConfig {
    let mut config = config();
    config.instruments.truncate(1);
    let listing = &mut config.instruments[0];
    (listing.tick, listing.lot, listing.minimum) = (Price(1), Quantity(1), Quantity(1));
    (listing.bid, listing.ask) = (Price::ZERO, Price::ZERO);
    for account in &mut config.accounts {
        account.balances = vec![("BTC".to_owned(), quantity("5")), ("USDT".to_owned(), quantity("500"))];
    }
    config.maker_fee_e6 = maker_fee_e6;
    config
}

fn run(desk: &mut SimDesk, at_ns: u64, step: &Step) {
    match *step {
        Step::Place { account, is_buy, is_market, time, post_only, price, quantity } => {
            // A refusal is as good an outcome as an acceptance.
            let _ = desk.place(
                at_ns,
                &NewDeskOrder {
                    account,
                    instrument: SPOT,
                    client_id: "",
                    side: if is_buy { Side::Buy } else { Side::Sell },
                    order_type: if is_market { OrderType::Market } else { OrderType::Limit },
                    time_in_force: TIMES[time],
                    post_only,
                    reduce_only: false,
                    price: Price(price),
                    quantity: Quantity(quantity),
                },
            );
        }
        Step::Cancel { account, pick } => {
            if let Some(id) = open_id(desk, account, pick) {
                assert_eq!(desk.cancel(at_ns, account, OrderName::Exchange(id)), Ok(id));
            }
        }
        Step::Amend { account, pick, price, quantity } => {
            if let Some(id) = open_id(desk, account, pick) {
                let _ = desk.amend(at_ns, account, OrderName::Exchange(id), price.map(Price), quantity.map(Quantity));
            }
        }
        Step::CancelAll { account } => {
            assert_eq!(desk.open_orders(account).count(), desk.cancel_all(at_ns, account, None));
        }
        Step::Quote { bid, spread, size } => {
            desk.quote(at_ns, SPOT, Price(bid), Quantity(size), Price(bid + spread), Quantity(size));
        }
    }
}

/// Returns the id of one of the open orders, if there are so many.
fn open_id(desk: &SimDesk, account: usize, pick: usize) -> Option<u64> {
    desk.open_orders(account).nth(pick).map(|order| order.id)
}

/// Checks that the balances of an account are those of the start and its fills, and that its open orders reserve the
/// difference between total and available. Returns the totals with the fees, in base and quote.
fn check_account(desk: &SimDesk, account: usize, start: &SimInstrument) -> [i128; 2] {
    let [mut base, mut quote] = [5 * UNIT, 500 * UNIT];
    let mut fees = [0; 2];
    for fill in desk.fills(account) {
        let (amount, value) =
            (i128::from(fill.quantity.0), i128::from(fill.price.0) * i128::from(fill.quantity.0) / UNIT);
        let fee = i128::from(fill.fee);
        match fill.side {
            Side::Buy => {
                assert_eq!(fill.fee_currency, start.base);
                (base, quote, fees[0]) = (base + amount - fee, quote - value, fees[0] + fee);
            }
            Side::Sell => {
                assert_eq!(fill.fee_currency, start.quote);
                (base, quote, fees[1]) = (base - amount, quote + value - fee, fees[1] + fee);
            }
        }
    }
    let mut reserved = [0_i128; 2];
    for order in desk.open_orders(account) {
        let open = i128::from(order.open_quantity().0);
        match order.side {
            Side::Buy => reserved[1] += (i128::from(order.price.0) * open + UNIT - 1) / UNIT,
            Side::Sell => reserved[0] += open,
        }
    }
    for (currency, total, available) in desk.balance(account) {
        let [expected, reserved] = if currency == start.base { [base, reserved[0]] } else { [quote, reserved[1]] };
        assert_eq!(i128::from(total.0), expected, "{account} {currency}");
        assert_eq!(i128::from(total.0 - available.0), reserved, "{account} {currency}");
        assert!(available >= Quantity::ZERO, "{account} {currency}: {available}");
    }
    [base + fees[0], quote + fees[1]]
}

/// States and filled quantities of all orders, as the events report them.
#[derive(Default)]
struct Seen(BTreeMap<u64, (DeskState, Quantity)>);

impl Seen {
    /// Checks that states and quantities of orders only grow, and each quantity by its fill.
    fn follow(&mut self, events: Vec<DeskEvent>) {
        for event in events {
            let DeskEvent::Order(order, account, fill) = event else { continue };
            assert_eq!(account, order.account);
            let (state, filled) = self.0.get(&order.id).copied().unwrap_or((DeskState::Live, Quantity::ZERO));
            assert!(state <= order.state && state < DeskState::Filled, "{state:?}, then {order:?}");
            let step = fill.map_or(0, |fill| fill.quantity.0);
            assert_eq!(order.filled.0, filled.0 + step, "{order:?}");
            assert_eq!(order.state == DeskState::Filled, order.filled == order.quantity, "{order:?}");
            self.0.insert(order.id, (order.state, order.filled));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn balances_are_conserved_and_orders_never_go_back(
        steps in vec(step(), 1..60),
        is_quoted in any::<bool>(),
        maker_fee_e6 in -500..500_i64,
    ) {
        let config = fine(maker_fee_e6);
        let listing = config.instruments[0].clone();
        let mut desk = SimDesk::new(config);
        let mut seen = Seen::default();
        for (at_ns, step) in (1..).zip(&steps) {
            if is_quoted || !matches!(step, Step::Quote { .. }) {
                run(&mut desk, at_ns, step);
            }
            seen.follow(desk.take_events());
            let sums = [0, 1].map(|account| check_account(&desk, account, &listing));
            if !is_quoted {
                let both = [sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]];
                prop_assert_eq!(both, [10 * UNIT, 1_000 * UNIT], "nothing comes from elsewhere");
            }
        }
        for account in [0, 1] {
            let mut filled: BTreeMap<u64, i64> = BTreeMap::new();
            for fill in desk.fills(account) {
                *filled.entry(fill.order).or_default() += fill.quantity.0;
            }
            for (id, sum) in filled {
                let order = desk.order(account, OrderName::Exchange(id)).expect("it is kept");
                prop_assert_eq!(order.filled, Quantity(sum));
                prop_assert_eq!(seen.0.get(&id).copied(), Some((order.state, order.filled)));
            }
        }
    }
}

//! Random numbers from a seed that is printed, and inputs drawn with them.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecType, ExecutionReport, NewOrder, OrdStatus, OrderId, Price,
    Quantity, ReplaceOrder, Request, SymbolId, VenueId, VenueOrderId,
};
use tickpath_orders::{AccountLimits, Envelope, Input, Instrument, Kill};

/// The seed of this run: `TICKPATH_SEED` or a fixed one. What is printed shows when the test fails.
pub fn seed() -> u64 {
    let seed = std::env::var("TICKPATH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_721);
    println!("TICKPATH_SEED={seed}");
    seed
}

/// A xorshift generator.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, count: u64) -> u64 {
        (self.draw() >> 11) % count
    }

    /// True once in so many times.
    pub fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Mostly a small number, now and then one at the edge of 64 bits.
    pub fn quantity(&mut self) -> i64 {
        match self.below(60) {
            0 => self.pick(&[0, -1, i64::MIN, i64::MAX, i64::MAX - 1]),
            _ => 1 + self.below(12) as i64,
        }
    }

    pub fn price(&mut self) -> i64 {
        match self.below(60) {
            0 => self.pick(&[0, -100, i64::MIN, i64::MAX]),
            _ => 88 + self.below(24) as i64,
        }
    }
}

const ACCOUNTS: &[u32] = &[1, 1, 1, 1, 2, 2, 2, 3, 65_535, 65_536, u32::MAX];
const SYMBOLS: &[u32] = &[1, 1, 1, 1, 2, 2, 2, 3, 65_536];

/// One random input. `last` is the highest journal sequence so far, so that reports can name requests that exist.
pub fn input(dice: &mut Dice, last: u64) -> Input {
    match dice.below(100) {
        0 => Input::Instrument(instrument(dice)),
        1 => Input::Account(limits(dice)),
        2 => Input::Kill(Kill {
            scope: dice.below(5) as u8,
            on: u8::from(dice.once_in(3)),
            reserved: [0; 2],
            target: dice.pick(ACCOUNTS),
        }),
        3..=24 => {
            let new = new_order(dice);
            request(dice, Request::New(new))
        }
        25..=34 => {
            let cancel = CancelOrder {
                client_order_id: client(dice),
                original: client(dice),
                account: AccountId(dice.pick(ACCOUNTS)),
                ..Default::default()
            };
            request(dice, Request::Cancel(cancel))
        }
        35..=46 => {
            let replace = ReplaceOrder {
                client_order_id: client(dice),
                original: client(dice),
                price: Price(dice.price()),
                quantity: Quantity(dice.quantity()),
                account: AccountId(dice.pick(ACCOUNTS)),
                ..Default::default()
            };
            request(dice, Request::Replace(replace))
        }
        _ => Input::Report(report(dice, last)),
    }
}

pub fn instrument(dice: &mut Dice) -> Instrument {
    Instrument {
        symbol: SymbolId(dice.pick(SYMBOLS)),
        venue: VenueId(dice.below(3) as u16),
        multiplier: dice.pick(&[1, 1, 50, i64::MAX, 0, -1]),
        ..Default::default()
    }
}

pub fn limits(dice: &mut Dice) -> AccountLimits {
    AccountLimits {
        account: AccountId(dice.pick(ACCOUNTS)),
        rate_limit: dice.pick(&[0, 0, 5, 20]),
        rate_window: dice.pick(&[0, 50, 1000]),
        max_order_quantity: Quantity(dice.pick(&[5, 10, i64::MAX, 0])),
        max_notional: dice.pick(&[600_i128, 1200, i128::MAX, i128::MAX]).to_le_bytes(),
        collar: dice.pick(&[500, 1000, u32::MAX]),
        reserved: 0,
        max_reference_age: dice.pick(&[10, 100, u64::MAX]),
        max_position: Quantity(dice.pick(&[20, 100, i64::MAX, i64::MAX])),
    }
}

fn request(dice: &mut Dice, request: Request) -> Input {
    let envelope = Envelope {
        reference_price: Price(if dice.once_in(30) { dice.price() } else { 100 }),
        reference_age: if dice.once_in(20) { dice.below(200) } else { 1 },
        session: 1 + dice.below(2) as u16,
        ..Default::default()
    };
    Input::Request { envelope, request }
}

fn client(dice: &mut Dice) -> ClientOrderId {
    ClientOrderId(dice.below(400))
}

fn new_order(dice: &mut Dice) -> NewOrder {
    let hostile = dice.once_in(80);
    NewOrder {
        client_order_id: client(dice),
        price: Price(dice.price()),
        quantity: Quantity(dice.quantity()),
        symbol: SymbolId(dice.pick(SYMBOLS)),
        account: AccountId(dice.pick(ACCOUNTS)),
        side: if hostile { dice.below(256) as u8 } else { dice.pick(&[1, 2]) },
        order_type: dice.pick(&[1, 2, 2, 2]),
        time_in_force: if hostile { dice.below(8) as u8 } else { 0 },
        ..Default::default()
    }
}

const SAID: &[ExecType] = &[
    ExecType::New,
    ExecType::Trade,
    ExecType::Trade,
    ExecType::Trade,
    ExecType::Replaced,
    ExecType::Replaced,
    ExecType::CancelRejected,
    ExecType::Canceled,
    ExecType::Expired,
    ExecType::Rejected,
    ExecType::PendingNew,
];

fn report(dice: &mut Dice, last: u64) -> ExecutionReport {
    let recent = |dice: &mut Dice| last.saturating_sub(dice.below(60));
    let order = recent(dice);
    let quantity = |dice: &mut Dice| match dice.below(100) {
        0 => dice.quantity(),
        _ => dice.below(12) as i64,
    };
    let answered = match dice.below(3) {
        0 => 0,
        1 => order,
        _ => recent(dice),
    };
    let status = if dice.once_in(25) { OrdStatus::Unknown } else { OrdStatus::New };
    ExecutionReport {
        order_id: OrderId(order),
        client_order_id: ClientOrderId(answered),
        venue_order_id: VenueOrderId(dice.below(3)),
        exec_id: ExecId(dice.below(200)),
        venue_sequence: if order % 2 == 0 { 0 } else { dice.below(8) },
        last_price: Price(dice.price()),
        last_quantity: Quantity(quantity(dice)),
        cumulative_quantity: Quantity(quantity(dice)),
        leaves_quantity: Quantity(quantity(dice)),
        price: Price(dice.price()),
        venue_stamp: dice.draw(),
        reason: dice.below(3) as u16,
        venue: VenueId(dice.below(2) as u16),
        exec_type: if dice.once_in(100) { dice.below(256) as u8 } else { dice.pick(SAID).code() },
        status: if dice.once_in(100) { dice.below(256) as u8 } else { status.code() },
        ..Default::default()
    }
}

//! Random commands at few prices, so that many orders meet; optionally with hostile commands.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecId, ExecutionReport, MassCancel, NewOrder, Price, Quantity,
    ReplaceOrder, Request, StatusRequest, SymbolId, TopOfBook,
};
use tickpath_venue_sim::{FillError, SimVenue};

/// Number of symbols that the commands use; hostile commands also name others.
pub const SYMBOLS: u32 = 2;

/// An action on a venue.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    Request(Request),
    Tick(TopOfBook),
    Bust(ExecId),
    Correct(ExecId, Price, Quantity),
    EndOfDay,
}

/// An endless sequence of commands, the same for the same seed and the same reports.
pub struct Commands {
    state: u64,
    hostile: bool,
    last_id: u64,
    /// The last fill that was reported.
    last_fill: u64,
}

/// Returns the seed from the environment, or a fixed seed, and prints it, so that a failed run can be repeated.
pub fn seed() -> u64 {
    let seed = std::env::var("TICKPATH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_240_229);
    println!("TICKPATH_SEED={seed}");
    seed
}

impl Command {
    /// Applies the command and returns its reports.
    pub fn apply(&self, venue: &mut SimVenue, stamp: u64) -> Result<Vec<ExecutionReport>, FillError> {
        let mut reports = Vec::new();
        let done = match *self {
            Self::Request(request) => {
                venue.request(stamp, &request, &mut reports);
                Ok(())
            }
            Self::Tick(tick) => {
                venue.top_of_book(stamp, &tick, &mut reports);
                Ok(())
            }
            Self::Bust(fill) => venue.bust(stamp, fill, &mut reports),
            Self::Correct(fill, price, quantity) => venue.correct(stamp, fill, price, quantity, &mut reports),
            Self::EndOfDay => {
                venue.end_of_day(stamp, &mut reports);
                Ok(())
            }
        };
        assert!(done.is_ok() || reports.is_empty(), "refused, and told all the same: {self:?}");
        done.map(|()| reports)
    }
}

impl Commands {
    pub fn new(seed: u64, hostile: bool) -> Self {
        // The generator must not start from zero, which it would never leave.
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, hostile, last_id: 0, last_fill: 0 }
    }

    /// Draws the next command.
    pub fn draw(&mut self) -> Command {
        match self.below(400) {
            0..=189 => Command::Request(Request::New(self.new_order())),
            190..=259 => Command::Request(Request::Cancel(self.cancel())),
            260..=309 => Command::Request(Request::Replace(self.replace())),
            310..=339 => Command::Request(Request::Status(self.status())),
            340 => Command::Request(Request::MassCancel(self.mass_cancel())),
            341..=346 => Command::Bust(self.fill()),
            347..=353 => Command::Correct(self.fill(), self.price(), self.quantity()),
            354 => Command::EndOfDay,
            _ => Command::Tick(self.tick()),
        }
    }

    /// Records fills, so that later commands change some of them.
    pub fn see(&mut self, reports: &[ExecutionReport]) {
        self.last_fill = reports.iter().map(|report| report.exec_id.0).fold(self.last_fill, u64::max);
    }

    fn new_order(&mut self) -> NewOrder {
        let market = self.one_in(10);
        NewOrder {
            client_order_id: self.order_id(),
            price: if market && !self.hostile_one_in(10) { Price(0) } else { self.price() },
            quantity: self.quantity(),
            cause: 0,
            symbol: self.symbol(),
            account: AccountId(self.below(3) as u32),
            side: self.code(&[1, 2]),
            order_type: self.code(if market { &[1] } else { &[2] }),
            time_in_force: self.code(&[0, 0, 0, 1, 3, 3, 4]),
            position_effect: self.code(&[0, 1, 2]),
            instructions: if self.one_in(100) { self.pick(&[2, 3]) } else { self.code(&[0, 0, 0, 1]) },
            self_trade_mode: if self.one_in(100) { self.code(&[1, 2, 3]) } else { 0 },
            trade_mode: if self.one_in(100) { self.code(&[1, 2, 3]) } else { 0 },
            ..NewOrder::default()
        }
    }

    fn cancel(&mut self) -> CancelOrder {
        CancelOrder {
            client_order_id: self.fresh_id(),
            original: self.recent_id(),
            symbol: self.symbol(),
            account: AccountId(self.below(3) as u32),
            ..CancelOrder::default()
        }
    }

    fn replace(&mut self) -> ReplaceOrder {
        ReplaceOrder {
            client_order_id: self.fresh_id(),
            original: self.recent_id(),
            price: self.price(),
            quantity: self.quantity(),
            symbol: self.symbol(),
            account: AccountId(self.below(3) as u32),
            ..ReplaceOrder::default()
        }
    }

    fn status(&mut self) -> StatusRequest {
        StatusRequest {
            client_order_id: self.fresh_id(),
            original: self.recent_id(),
            symbol: self.symbol(),
            account: AccountId(self.below(3) as u32),
            ..StatusRequest::default()
        }
    }

    fn mass_cancel(&mut self) -> MassCancel {
        MassCancel {
            client_order_id: self.fresh_id(),
            symbol: self.symbol(),
            account: AccountId(self.below(3) as u32),
            cancel_type: if self.hostile_one_in(10) { 3 } else { self.pick(&[1, 7]) },
            ..MassCancel::default()
        }
    }

    /// Draws a recent fill: valid, busted, of an earlier day, or nonexistent.
    fn fill(&mut self) -> ExecId {
        ExecId((self.last_fill + 1).saturating_sub(self.below(40)))
    }

    fn tick(&mut self) -> TopOfBook {
        let bid = self.price();
        let ask = match self.one_in(16) {
            true => self.price(),
            false => Price(bid.0.saturating_add(self.below(4) as i64)),
        };
        TopOfBook {
            bid,
            bid_quantity: if self.one_in(10) { Quantity(0) } else { self.quantity() },
            ask,
            ask_quantity: if self.one_in(10) { Quantity(0) } else { self.quantity() },
            symbol: self.symbol(),
            ..TopOfBook::default()
        }
    }

    fn order_id(&mut self) -> ClientOrderId {
        if self.hostile_one_in(100) {
            return ClientOrderId(self.pick(&[0, u64::MAX]));
        }
        if self.one_in(50) { self.recent_id() } else { self.fresh_id() }
    }

    fn fresh_id(&mut self) -> ClientOrderId {
        self.last_id += 1 + self.below(3);
        ClientOrderId(self.last_id)
    }

    /// Draws a recent id: of an open order, of a finished order, or of none.
    fn recent_id(&mut self) -> ClientOrderId {
        ClientOrderId(self.last_id.saturating_sub(self.below(60)).max(1))
    }

    fn symbol(&mut self) -> SymbolId {
        if self.hostile_one_in(100) { SymbolId(u32::MAX) } else { SymbolId(self.below(u64::from(SYMBOLS)) as u32) }
    }

    fn price(&mut self) -> Price {
        if self.hostile_one_in(100) {
            return Price(self.pick(&[0, -5, i64::MAX, i64::MIN]));
        }
        Price(95 + self.below(10) as i64)
    }

    /// Draws a quantity, mostly small; sometimes large enough to clear a side.
    fn quantity(&mut self) -> Quantity {
        if self.hostile_one_in(100) {
            return Quantity(self.pick(&[0, -1, i64::MAX, i64::MAX, i64::MIN]));
        }
        if self.one_in(64) { Quantity(500) } else { Quantity(1 + self.below(9) as i64) }
    }

    fn code(&mut self, good: &[u8]) -> u8 {
        if self.hostile_one_in(200) { self.below(256) as u8 } else { self.pick(good) }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn hostile_one_in(&mut self, n: u64) -> bool {
        self.hostile && self.one_in(n)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Draws a number below `n` from the upper bits of a xorshift generator.
    fn below(&mut self, n: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) % n
    }
}

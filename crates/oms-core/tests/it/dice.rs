//! Random numbers from a printed seed.

use tickpath_market::NewOrder;

/// Returns the seed of this run, `TICKPATH_SEED` or a fixed number, and prints it; a failed test shows its output.
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

    /// Returns true with probability 1 in `count`.
    pub fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Returns mostly a small number, and rarely one at the edge of 64 bits.
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

    /// Returns an order with random instructions and modes, rarely with an unknown code; the rest is zero.
    pub fn instructions(&mut self) -> NewOrder {
        let codes = if self.once_in(100) { 8 } else { 4 };
        NewOrder {
            position_effect: self.pick(&[0, 0, 1, 2]),
            instructions: self.below(codes) as u8,
            self_trade_mode: self.below(codes) as u8,
            trade_mode: self.below(codes) as u8,
            ..NewOrder::default()
        }
    }
}

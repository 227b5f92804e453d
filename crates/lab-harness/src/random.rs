//! Random numbers from a seed, the same on every machine.

/// SplitMix64 generator: small, and the same on every machine.
#[derive(Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Creates a generator; the same seed gives the same numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, from the whole range of `u64`.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number from zero to below `limit`, which must be above zero.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    /// Shuffles the items, with every order equally likely.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for index in (1..things.len()).rev() {
            things.swap(index, self.below(index + 1));
        }
    }
}

//! The pace of connects. OKX counts connects, logins and requests of an address, and refuses those beyond its rates: a
//! caller that tries again at once would keep itself out.

/// Doublings of the pause between two refused connects.
const MAX_DOUBLINGS: u32 = 5;

/// Pauses before a connect. Times are in ticks.
#[derive(Debug)]
pub(crate) struct ConnectPacer {
    first_pause: u64,
    /// Refusals since the line was up.
    refusals: u32,
    not_before: u64,
}

impl ConnectPacer {
    /// Makes a pacer with this pause after the first refusal. Each further one doubles the pause.
    pub fn new(first_pause: u64) -> Self {
        Self { first_pause, refusals: 0, not_before: 0 }
    }

    /// Notes that OKX has ended a connection or a connect for its rate.
    pub fn note_refusal(&mut self, now: u64) {
        let pause = self.first_pause.saturating_mul(1 << self.refusals.min(MAX_DOUBLINGS));
        self.refusals = self.refusals.saturating_add(1);
        self.not_before = now.saturating_add(pause);
    }

    /// Notes that the line is up.
    pub fn note_up(&mut self) {
        self.refusals = 0;
    }

    /// Returns the time before which no connect begins.
    pub fn not_before(&self) -> u64 {
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_doubles_the_pause_up_to_a_limit_until_the_line_is_up() {
        let mut pacer = ConnectPacer::new(10);
        assert_eq!(pacer.not_before(), 0);
        let pauses: Vec<u64> = (0..8)
            .map(|_| {
                pacer.note_refusal(1_000);
                pacer.not_before() - 1_000
            })
            .collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 320, 320]);
        pacer.note_up();
        pacer.note_refusal(2_000);
        assert_eq!(pacer.not_before(), 2_010);
    }
}

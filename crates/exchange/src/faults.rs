//! What goes wrong on purpose: a venue that drops, doubles, swaps, refuses, delays or halts when it is told to.
//!
//! ```text
//!   requests ──(halt)──(drop)──> venue, which may reject ──> reports ──(drop)──(double)──(swap)──(delay)──> lane
//! ```
//!
//! A report's identity is its place in its lane, so that what the lane holds must be what a replay comes to. The dice are
//! therefore a part of the venue's state: their seed and the chances stand in the journal, they are thrown for each input
//! in its turn, and a replay throws the same. What was dropped was never sent, to a replay as to the lane. A delay and a
//! halt change only when something happens, and are not written down.

use std::fmt;
use std::str::FromStr;

use tickpath_market::{ExecutionReport, Request};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::input::Input;
use crate::owners::{Told, View};
use crate::{FillError, Venue};

/// What goes wrong on purpose. Nothing, by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// What the dice begin with.
    pub seed: u64,
    /// Requests that never reach the venue.
    pub drop_requests: Chance,
    /// Reports that never arrive.
    pub drop: Chance,
    /// Reports that arrive twice.
    pub double: Chance,
    /// Reports that arrive behind the next one.
    pub swap: Chance,
    /// New orders that are refused.
    pub reject: Chance,
    /// How long each report is held back, in nanoseconds.
    pub delay_ns: u64,
    /// No request is taken: they stay in their lane, or in their socket.
    pub halt: bool,
    /// Requests that end their connection, half of them before they are taken; of lines by sockets.
    pub cut: Chance,
}

/// How often something happens, in millionths: from 0, never, to 1,000,000, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chance(pub u32);

impl Chance {
    /// As often as not.
    pub(crate) const HALF: Self = Self(ALWAYS / 2);
}

/// Dice for what the venue's state does not depend on.
#[derive(Debug)]
pub(crate) struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { seed, thrown: 0 }
    }

    /// Throws them.
    #[inline]
    pub fn happens(&mut self, Chance(chance): Chance) -> bool {
        chance > 0 && {
            self.thrown += 1;
            falls(self.seed, self.thrown, chance)
        }
    }
}

/// A text that is no chance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no chance; use 0, which is never, to 1, which is always, with up to six decimals")]
pub struct ParseChanceError(String);

/// The part of the faults that decides what is said, as the journal has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Chances {
    seed: u64,
    drop_requests: u32,
    drop: u32,
    double: u32,
    swap: u32,
    reject: u32,
    reserved: u32,
}

impl Chances {
    /// Returns the chances, in millionths, by name.
    pub fn fields(self) -> [(&'static str, u64); 6] {
        let chances = [self.drop_requests, self.drop, self.double, self.swap, self.reject].map(u64::from);
        let [drop_requests, drop, double, swap, reject] = chances;
        [
            ("seed", self.seed),
            ("drop_requests", drop_requests),
            ("drop", drop),
            ("double", double),
            ("swap", swap),
            ("reject", reject),
        ]
    }
}

/// Faults at work.
#[derive(Debug, Default)]
pub(crate) struct Faulty {
    chances: Chances,
    /// How often the dice were thrown since the chances are these.
    thrown: u64,
    /// A report that is to come behind the next one.
    held: Option<Told>,
    delay_ns: u64,
    halt: bool,
    made: Vec<ExecutionReport>,
}

const ALWAYS: u32 = 1_000_000;

impl Faults {
    /// Whether anything goes wrong at all.
    pub fn is_any(&self) -> bool {
        *self != Self { seed: self.seed, ..Self::default() }
    }
}

impl Faulty {
    /// Other faults from here on. If the chances change, gives what the journal must say before the next input.
    pub fn change(&mut self, faults: Faults) -> Option<Chances> {
        (self.delay_ns, self.halt) = (faults.delay_ns, faults.halt);
        let chances = Chances::of(&faults);
        (chances != self.chances).then(|| {
            self.take_up(chances);
            chances
        })
    }

    /// Other chances from here on, as the journal says.
    pub fn take_up(&mut self, chances: Chances) {
        (self.chances, self.thrown) = (chances, 0);
    }

    /// Forgets what was held back: its lane is lost.
    pub fn let_go(&mut self) {
        self.held = None;
    }

    /// How long a report is held back.
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// Whether no request is taken now.
    pub fn halts(&self) -> bool {
        self.halt
    }

    /// Applies an input, and leaves in `told`, which is empty, what is to be sent. The `view` is that of the input's owner.
    pub fn apply(
        &mut self,
        input: &Input,
        venue: &mut Venue,
        view: View<'_>,
        stamp: u64,
        told: &mut Vec<Told>,
    ) -> Result<(), FillError> {
        let is_quiet = self.chances == Chances::default() && self.held.is_none();
        let mut made = std::mem::take(&mut self.made);
        let applied = self.have(input, venue, view, stamp, &mut made);
        for report in made.drain(..) {
            match is_quiet {
                true => told.push(view.told(report)),
                false => self.send(view.told(report), told),
            }
        }
        self.made = made;
        applied
    }

    /// Has the venue take an input, drop it, or refuse it.
    fn have(
        &mut self,
        input: &Input,
        venue: &mut Venue,
        view: View<'_>,
        stamp: u64,
        made: &mut Vec<ExecutionReport>,
    ) -> Result<(), FillError> {
        match input {
            Input::Request(..) if self.happens(self.chances.drop_requests) => {}
            Input::Request(_, Request::New(new)) if self.happens(self.chances.reject) => {
                venue.refuse(stamp, new, made);
            }
            input => input.apply(venue, &|order| view.is_mine(order), stamp, made)?,
        }
        Ok(())
    }

    fn send(&mut self, report: Told, told: &mut Vec<Told>) {
        if self.happens(self.chances.drop) {
            return;
        }
        let copies = if self.happens(self.chances.double) { 2 } else { 1 };
        if self.held.is_none() && self.happens(self.chances.swap) {
            told.extend((1..copies).map(|_| report));
            self.held = Some(report);
            return;
        }
        told.extend((0..copies).map(|_| report));
        told.extend(self.held.take());
    }

    /// Throws the dice.
    fn happens(&mut self, chance: u32) -> bool {
        if chance == 0 {
            return false;
        }
        self.thrown += 1;
        falls(self.chances.seed, self.thrown, chance)
    }
}

impl Chances {
    fn of(faults: &Faults) -> Self {
        let Faults { seed, drop_requests, drop, double, swap, reject, .. } = *faults;
        let chances = [drop_requests, drop, double, swap, reject].map(|Chance(millionths)| millionths.min(ALWAYS));
        if chances == [0; 5] {
            // Dice that are never thrown have no seed.
            return Self::default();
        }
        let [drop_requests, drop, double, swap, reject] = chances;
        Self { seed, drop_requests, drop, double, swap, reject, reserved: 0 }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_any() {
            return f.write_str("nothing goes wrong on purpose");
        }
        f.write_str("on purpose:")?;
        let mut comma = "";
        let mut add = |is_on: bool, what: fmt::Arguments<'_>| {
            if is_on {
                write!(f, "{comma} {what}")?;
                comma = ",";
            }
            Ok(())
        };
        for (chance, what) in [
            (self.drop_requests, "of the requests are dropped"),
            (self.reject, "of the new orders are rejected"),
            (self.drop, "of the reports are dropped"),
            (self.double, "of the reports are doubled"),
            (self.swap, "of the reports come behind the next one"),
            (self.cut, "of the requests cut their line"),
        ] {
            add(chance != Chance::default(), format_args!("{chance} {what}"))?;
        }
        add(self.delay_ns > 0, format_args!("reports wait for {} ms", self.delay_ns / 1_000_000))?;
        add(self.halt, format_args!("no request is taken"))
    }
}

impl FromStr for Chance {
    type Err = ParseChanceError;

    fn from_str(text: &str) -> Result<Self, ParseChanceError> {
        let none = || ParseChanceError(text.to_owned());
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
        if whole.len() != 1 || !is_number(whole) || decimals.len() > 6 || !is_number(decimals) {
            return Err(none());
        }
        let millionths: u32 = format!("{whole}{decimals:0<6}").parse().map_err(|_| none())?;
        if millionths > ALWAYS { Err(none()) } else { Ok(Self(millionths)) }
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / ALWAYS, self.0 % ALWAYS);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Whether a throw of the dice with this seed falls so.
fn falls(seed: u64, thrown: u64, chance: u32) -> bool {
    mix(seed.wrapping_add(thrown.wrapping_mul(0x9e37_79b9_7f4a_7c15))) % u64::from(ALWAYS) < u64::from(chance)
}

/// Numbers that count up become numbers without a pattern (the finaliser of SplitMix64).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

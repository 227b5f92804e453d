//! Fault injection: a venue that drops, doubles, swaps, rejects, delays or halts as configured.
//!
//! ```text
//!   requests ──(halt)──(drop)──> venue, which may reject ──> reports ──(drop)──(double)──(swap)──(delay)──> lane
//! ```
//!
//! A report's identity is its place in its lane, so a replay must produce exactly the reports that the lane holds. The
//! dice are therefore a part of the venue's state: the journal has their seed and the chances, each input throws them
//! in its turn, and a replay throws the same. A dropped report has no place in the lane, and a replay drops it as well.
//! A delay and a halt change only the time of events, and are not journaled.

use std::fmt;
use std::str::FromStr;

use tickpath_market::{ExecutionReport, Request};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::input::VenueInput;
use crate::owners::{ReportTranslation, RoutedReport};
use crate::{FillError, SimVenue};

/// Faults that are injected on purpose; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InjectedFaults {
    /// Seed of the dice.
    pub seed: u64,
    /// Chance that a request never reaches the venue.
    pub drop_requests: Chance,
    /// Chance that a report never arrives.
    pub drop: Chance,
    /// Chance that a report arrives twice.
    pub double: Chance,
    /// Chance that a report arrives behind the next report.
    pub swap: Chance,
    /// Chance that a new order is rejected.
    pub reject: Chance,
    /// Delay of each report, in nanoseconds.
    pub delay_ns: u64,
    /// Keeps requests from being taken: they stay in their lane, or in their socket.
    pub halt: bool,
    /// Chance that a request on a socket cuts its connection, half the time before the request is taken.
    pub cut: Chance,
}

/// Probability of a fault in millionths, from 0 (never) to 1,000,000 (always).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chance(pub u32);

impl Chance {
    /// Chance of one half.
    pub(crate) const HALF: Self = Self(ALWAYS / 2);
}

/// Dice that decide whether a fault happens. The same seed gives the same throws.
#[derive(Debug, Default)]
pub struct FaultDice {
    seed: u64,
    throws: u64,
}

impl FaultDice {
    /// Creates dice that were not thrown yet.
    pub fn new(seed: u64) -> Self {
        Self { seed, throws: 0 }
    }

    /// Throws the dice, and returns whether the fault happens.
    #[inline]
    pub fn happens(&mut self, Chance(chance): Chance) -> bool {
        chance > 0 && {
            self.throws += 1;
            let thrown = self.seed.wrapping_add(self.throws.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            mix(thrown) % u64::from(ALWAYS) < u64::from(chance)
        }
    }
}

/// Error for a text that is not a chance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no chance; use 0, which is never, to 1, which is always, with up to six decimals")]
pub struct ParseChanceError(String);

/// Journaled part of the faults, which decides which reports are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct FaultChances {
    seed: u64,
    drop_requests: u32,
    drop: u32,
    double: u32,
    swap: u32,
    reject: u32,
    reserved: u32,
}

impl FaultChances {
    fn of(faults: &InjectedFaults) -> Self {
        let InjectedFaults { seed, drop_requests, drop, double, swap, reject, .. } = *faults;
        let chances = [drop_requests, drop, double, swap, reject].map(|Chance(millionths)| millionths.min(ALWAYS));
        if chances == [0; 5] {
            // Without chances the seed means nothing, so a changed seed alone is no change of the chances.
            return Self::default();
        }
        let [drop_requests, drop, double, swap, reject] = chances;
        Self { seed, drop_requests, drop, double, swap, reject, reserved: 0 }
    }

    /// Returns the chances, in millionths, by name.
    pub fn fields(self) -> [(&'static str, u64); 6] {
        [
            ("seed", self.seed),
            ("drop_requests", self.drop_requests.into()),
            ("drop", self.drop.into()),
            ("double", self.double.into()),
            ("swap", self.swap.into()),
            ("reject", self.reject.into()),
        ]
    }
}

#[derive(Debug, Default)]
pub(crate) struct FaultInjector {
    chances: FaultChances,
    /// Dice of these chances, thrown since they were set.
    dice: FaultDice,
    /// Report that is to follow the next report.
    held: Option<RoutedReport>,
    /// Delay of each report, in nanoseconds.
    pub delay_ns: u64,
    pub halt: bool,
    scratch: Vec<ExecutionReport>,
}

const ALWAYS: u32 = 1_000_000;

impl InjectedFaults {
    /// Returns whether any fault is configured.
    pub fn is_any(&self) -> bool {
        *self != Self { seed: self.seed, ..Self::default() }
    }
}

impl FaultInjector {
    /// Replaces the faults. Returns the chances if they changed: the journal must have them before the next input.
    pub fn change(&mut self, faults: InjectedFaults) -> Option<FaultChances> {
        (self.delay_ns, self.halt) = (faults.delay_ns, faults.halt);
        let chances = FaultChances::of(&faults);
        (chances != self.chances).then(|| {
            self.set_chances(chances);
            chances
        })
    }

    /// Sets the chances, as a journal record does, and restarts the dice.
    pub fn set_chances(&mut self, chances: FaultChances) {
        (self.chances, self.dice) = (chances, FaultDice::new(chances.seed));
    }

    /// Drops the held report, because its lane is lost.
    pub fn drop_held(&mut self) {
        self.held = None;
    }

    /// Applies an input, and fills the empty output list with the reports to send. The `view` is that of the input's
    /// owner.
    pub fn apply(
        &mut self,
        input: &VenueInput,
        venue: &mut SimVenue,
        view: ReportTranslation<'_>,
        stamp: u64,
        out: &mut Vec<RoutedReport>,
    ) -> Result<(), FillError> {
        let is_quiet = self.chances == FaultChances::default() && self.held.is_none();
        let mut reports = std::mem::take(&mut self.scratch);
        let applied = self.apply_or_drop(input, venue, view, stamp, &mut reports);
        for report in reports.drain(..) {
            match is_quiet {
                true => out.push(view.translate(report)),
                false => self.emit(view.translate(report), out),
            }
        }
        self.scratch = reports;
        applied
    }

    /// Applies an input to the venue, unless the dice drop or reject it.
    fn apply_or_drop(
        &mut self,
        input: &VenueInput,
        venue: &mut SimVenue,
        view: ReportTranslation<'_>,
        stamp: u64,
        reports: &mut Vec<ExecutionReport>,
    ) -> Result<(), FillError> {
        match input {
            VenueInput::Request(..) if self.dice.happens(Chance(self.chances.drop_requests)) => {}
            VenueInput::Request(_, Request::New(new)) if self.dice.happens(Chance(self.chances.reject)) => {
                venue.refuse(stamp, new, reports);
            }
            input => input.apply(venue, &|order| view.is_owned(order), stamp, reports)?,
        }
        Ok(())
    }

    fn emit(&mut self, report: RoutedReport, out: &mut Vec<RoutedReport>) {
        if self.dice.happens(Chance(self.chances.drop)) {
            return;
        }
        let copies = if self.dice.happens(Chance(self.chances.double)) { 2 } else { 1 };
        if self.held.is_none() && self.dice.happens(Chance(self.chances.swap)) {
            out.extend((1..copies).map(|_| report));
            self.held = Some(report);
            return;
        }
        out.extend((0..copies).map(|_| report));
        out.extend(self.held.take());
    }
}

impl fmt::Display for InjectedFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_any() {
            return f.write_str("no injected faults");
        }
        f.write_str("injected faults:")?;
        let mut comma = "";
        let mut add = |is_on: bool, fault: fmt::Arguments<'_>| {
            if is_on {
                write!(f, "{comma} {fault}")?;
                comma = ",";
            }
            Ok(())
        };
        for (chance, fault) in [
            (self.drop_requests, "of the requests are dropped"),
            (self.reject, "of the new orders are rejected"),
            (self.drop, "of the reports are dropped"),
            (self.double, "of the reports are doubled"),
            (self.swap, "of the reports arrive after the next one"),
            (self.cut, "of the requests cut their line"),
        ] {
            add(chance != Chance::default(), format_args!("{chance} {fault}"))?;
        }
        add(self.delay_ns > 0, format_args!("reports are delayed by {} ms", self.delay_ns / 1_000_000))?;
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

/// Turns numbers that count up into numbers without a pattern (the finaliser of SplitMix64).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

//! What of a run is the host's, and what is not.

use tickpath_clock::{Calibration, Gap};
use tickpath_harness::samples::Samples;

#[test]
fn a_stall_of_the_server_stays_in_whatever_ticks_fall_into_it() {
    let stall = (1_000_000, 6_000_000);
    let tick = Gap { from: 3_000_000, to: 3_004_000 };
    let hop = Samples(vec![stall]).hop(&Calibration::nanoseconds(), &[tick]);
    assert_eq!(hop.unstalled.map(|rest| rest.count), Some(1), "5 ms are not explained by 4 µs");
}

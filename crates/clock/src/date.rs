//! Calendar days.

/// Returns the UTC date of a time in nanoseconds since the Unix epoch, as the number 20261122.
pub fn utc_day(utc_ns: u64) -> u32 {
    // Days are counted in eras of 400 years that begin on March 1 of year 0, so that a leap day ends its year.
    let days = utc_ns / 86_400_000_000_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year * 10_000 + month * 100 + day) as u32
}

#[cfg(test)]
mod tests {
    use super::utc_day;

    #[test]
    fn utc_day_knows_leap_years() {
        let seconds = [0, 951_782_400, 951_868_800, 1_723_161_599, 4_102_444_800];
        let days = seconds.map(|seconds: u64| utc_day(seconds * 1_000_000_000));
        assert_eq!(days, [19_700_101, 20_000_229, 20_000_301, 20_240_808, 21_000_101]);
    }
}

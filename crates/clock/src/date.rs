//! Calendar dates of UTC times in nanoseconds since the Unix epoch.

/// Returns the UTC date of a time, as the number 20261122.
pub fn utc_day(utc_ns: u64) -> u32 {
    let (year, month, day) = date_of(utc_ns);
    (year * 10_000 + month * 100 + day) as u32
}

/// Returns a time as RFC 3339 in UTC, without its fraction of a second.
pub fn rfc3339(utc_ns: u64) -> String {
    let (year, month, day) = date_of(utc_ns);
    let of_day = utc_ns / 1_000_000_000 % 86_400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

fn date_of(utc_ns: u64) -> (u64, u64, u64) {
    // Days are counted in eras of 400 years that begin on March 1 of year 0, so that a leap day ends its year.
    let days = utc_ns / 86_400_000_000_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_respect_leap_years() {
        for (seconds, day, text) in [
            (0_u64, 19_700_101, "1970-01-01T00:00:00Z"),
            (951_782_400, 20_000_229, "2000-02-29T00:00:00Z"),
            (951_868_800, 20_000_301, "2000-03-01T00:00:00Z"),
            (1_723_161_599, 20_240_808, "2024-08-08T23:59:59Z"),
            (4_102_444_800, 21_000_101, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!((utc_day(seconds * 1_000_000_000), &*rfc3339(seconds * 1_000_000_000)), (day, text));
        }
    }
}

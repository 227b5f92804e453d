//! Moments as people read them.

/// A moment, nanoseconds since the Unix epoch, as RFC 3339 in UTC.
pub fn rfc3339(utc_ns: u64) -> String {
    let seconds = utc_ns / 1_000_000_000;
    let (days, of_day) = ((seconds / 86_400) as i64, seconds % 86_400);
    // Days are counted in eras of 400 years that begin on the first of March of year 0.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn moments_print_as_rfc_3339() {
        for (seconds, printed) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_723_161_599, "2024-08-08T23:59:59Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000), printed);
        }
    }
}

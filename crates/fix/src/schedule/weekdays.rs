//! Sets of weekdays, written like `mon-fri`, `mon,wed,fri` or `daily`.

use jiff::civil::Date;

const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Weekdays, from Monday on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weekdays([bool; 7]);

impl Weekdays {
    /// Reads weekdays: names and ranges with commas between them. A range may run across the end of the week.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "daily" {
            return Some(Self([true; 7]));
        }
        let mut days = [false; 7];
        for item in text.split(',') {
            let (from, to) = item.split_once('-').unwrap_or((item, item));
            let (mut day, last) = (index_of(from)?, index_of(to)?);
            days[day] = true;
            while day != last {
                day = (day + 1) % NAMES.len();
                days[day] = true;
            }
        }
        Some(Self(days))
    }

    /// Returns whether the date falls on one of these weekdays.
    pub(crate) fn contains(&self, date: Date) -> bool {
        usize::try_from(date.weekday().to_monday_zero_offset()).is_ok_and(|day| self.0[day])
    }

    /// Returns the days from `first` to this weekday, 0 to 6; none unless both are a single weekday.
    pub(crate) fn days_after(&self, first: Self) -> Option<i64> {
        let days = (self.single()? + NAMES.len() - first.single()?) % NAMES.len();
        i64::try_from(days).ok()
    }

    /// Returns the only weekday, from 0 for Monday on.
    fn single(&self) -> Option<usize> {
        let mut days = (0..).zip(self.0).filter(|(_, is_member)| *is_member).map(|(day, _)| day);
        let first = days.next()?;
        days.next().is_none().then_some(first)
    }
}

fn index_of(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| *known == name)
}

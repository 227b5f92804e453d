//! The section `[day]`: the calendar by which trading days end.

use std::path::Path;

use tickpath_oms_runtime::calendar::{Calendar, EndTime, Holiday, Weekdays, Zone};
use tickpath_settings::{Section, read_text};

/// Takes the calendar of the section; none if it has a mistake, which the section reports.
pub fn read_calendar(day: &mut Section<'_>) -> Option<Calendar> {
    let (zone, ends) = (day.require_parsed::<Zone>("time_zone"), day.require_parsed::<EndTime>("ends"));
    let weekdays = day.parsed::<Weekdays>("days").unwrap_or_default();
    let mut holidays: Vec<Holiday> = day.list("holidays").unwrap_or_default();
    if let Some(file) = day.path("holidays_file") {
        match read_holidays(&file) {
            Ok(listed) => holidays.extend(listed),
            Err(why) => day.add_mistake("holidays_file", why),
        }
    }
    Some(Calendar { zone: zone?, end_time: ends?, weekdays, holidays })
}

/// Reads a file with one date a line. Ignores empty lines, and comments behind a `#`.
fn read_holidays(file: &Path) -> Result<Vec<Holiday>, String> {
    let text = read_text(file).map_err(|e| e.to_string())?;
    let dates = (1..).zip(text.lines()).map(|(line, text)| (line, text.split('#').next().unwrap_or_default().trim()));
    let dates = dates.filter(|(_, text)| !text.is_empty());
    let read = dates
        .map(|(line, text)| text.parse::<Holiday>().map_err(|e| format!("line {line} of {}: {e}", file.display())));
    read.collect()
}

//! Days of a journal: each ends with a day-end record, and the last one has not ended.

use tickpath_log::{LogOpenError, LogPath, Next, Reader, ReaderStart, Registration};
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_journal::journal;
use zerocopy::FromBytes;

use crate::BlotterError;

/// Max days that an error names; they are the latest ones.
const MAX_NAMED: usize = 10;

/// A day of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TradingDay {
    /// Date of the day's end, as 20261128; none if the day has not ended.
    pub date: Option<u32>,
    /// First record of the day.
    pub first: u64,
    /// Record after the last one of the day; none if the day has not ended.
    pub end: Option<u64>,
}

/// Choice of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DayChoice {
    /// The day that has not ended.
    #[default]
    Today,
    /// The day that ended with this date, as 20261128.
    Date(u32),
    /// The day that begins with this record.
    FirstRecord(u64),
}

impl DayChoice {
    /// Finds the day in a journal.
    pub fn find(self, journal: &LogPath) -> Result<TradingDay, BlotterError> {
        match self {
            Self::Today => {
                // Only the log of the day is read.
                let logs = journal::logs(journal)?;
                let days = scan(logs.last().map_or(&[][..], std::slice::from_ref))?;
                days.last().copied().ok_or_else(|| LogOpenError::NotFound(journal.clone()).into())
            }
            Self::Date(day) => {
                let all = days(journal)?;
                let found: Vec<&TradingDay> = all.iter().filter(|found| found.date == Some(day)).collect();
                match found[..] {
                    [found] => Ok(*found),
                    [] => Err(BlotterError::NoDay { journal: journal.clone(), day, known: dates(&all) }),
                    _ => {
                        let firsts: Vec<String> = found.iter().map(|day| day.first.to_string()).collect();
                        Err(BlotterError::SeveralDays { journal: journal.clone(), day, firsts: firsts.join(", ") })
                    }
                }
            }
            Self::FirstRecord(first) => {
                let all = days(journal)?;
                let found = all.iter().find(|day| day.first == first).copied();
                found.ok_or_else(|| BlotterError::NoRecord { journal: journal.clone(), first, known: records(&all) })
            }
        }
    }
}

/// Returns the days of a journal, oldest first, as far as its archive reaches. The last one has not ended.
pub fn days(journal: &LogPath) -> Result<Vec<TradingDay>, BlotterError> {
    scan(&journal::logs(journal)?)
}

fn scan(logs: &[LogPath]) -> Result<Vec<TradingDay>, BlotterError> {
    let (mut days, mut first, mut is_empty) = (Vec::new(), None, true);
    for log in logs {
        let mut log = Reader::open(log, ReaderStart::Oldest, Registration::Unregistered)?;
        if is_empty {
            // A day begins with its log, because the record that ends the log before is no input.
            first = Some(log.first_sequence());
        }
        while let Next::Message(record) = log.next()? {
            match RecordKind::from_code(record.kind) {
                Some(RecordKind::DayEnd) => {
                    let date = DayEnd::read_from_bytes(record.payload).ok().map(|end| end.day);
                    let next = record.sequence + 1;
                    days.push(TradingDay { date, first: first.unwrap_or_default(), end: Some(next) });
                    (first, is_empty) = (Some(next), true);
                }
                Some(
                    RecordKind::JournalStart
                    | RecordKind::Digest
                    | RecordKind::JournalStop
                    | RecordKind::Lane
                    | RecordKind::JournalRollover,
                ) => {}
                _ => is_empty = false,
            }
        }
    }
    days.extend(first.map(|first| TradingDay { date: None, first, end: None }));
    Ok(days)
}

/// Returns the dates of the days' ends, in words.
fn dates(days: &[TradingDay]) -> String {
    let ended: Vec<String> = days.iter().filter_map(|day| day.date).map(|date| date.to_string()).collect();
    match ended.len() {
        0 => "no day has ended since its archive begins; leave --day out for the current day".to_owned(),
        1 => format!("{} has", ended[0]),
        _ => format!("these have: {}", latest(&ended)),
    }
}

/// Returns the first records of days, in words.
fn records(days: &[TradingDay]) -> String {
    let named = |day: &TradingDay| match day.date {
        Some(date) => format!("{} ({date})", day.first),
        None => format!("{} (has not ended)", day.first),
    };
    let firsts: Vec<String> = days.iter().map(named).collect();
    format!("days begin with {}", latest(&firsts))
}

fn latest(all: &[String]) -> String {
    let left_out = all.len().saturating_sub(MAX_NAMED);
    let named = all[left_out..].join(", ");
    if left_out == 0 { named } else { format!("{named}, and {left_out} older ones") }
}

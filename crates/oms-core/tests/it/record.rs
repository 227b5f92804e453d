//! The journal's structs keep their sizes, and inputs their bytes.

use tickpath_oms_core::{
    AccountLimits, Boot, CancelRecord, CancelScope, ConditionalRecord, DayEnd, DefinitionEnd, DetailRecord, Digest,
    EnterFill, EnterOrder, EnterPosition, Envelope, ExpiryTimer, ExtendedRecord, FirmLimits, GapTimer, Grant, Input,
    Instrument, JournalRollover, JournalStart, JournalStop, KillSwitch, LaneRecord, MassCancelRecord, MessageLoss,
    NameRecord, NewRecord, QueryStatus, RECORD_BYTES, Reconcile, RecordError, RecordKind, RejectRule, Release,
    ReplaceConditionalRecord, ReplaceRecord, ReportRecord, Resolve, SessionConnection, SessionRules, StatusRecord,
    SymbolLimits, TextIdRecord, TriggerFired, UnsentRequest, VenueConnection, VenueRules,
};

use tickpath_market::{ExtendedOrder, Request, TextIdRequest};
use zerocopy::FromZeros;

use crate::dice::seed;
use crate::random_inputs::World;

/// Kinds, and the bytes of their records.
const SIZES: &[(RecordKind, usize, usize)] = &[
    (RecordKind::JournalStart, size_of::<JournalStart>(), 24),
    (RecordKind::Instrument, size_of::<Instrument>(), 168),
    (RecordKind::Account, size_of::<AccountLimits>(), 152),
    (RecordKind::Kill, size_of::<KillSwitch>(), 16),
    (RecordKind::Digest, size_of::<Digest>(), 24),
    (RecordKind::JournalStop, size_of::<JournalStop>(), 16),
    (RecordKind::New, size_of::<NewRecord>(), 88),
    (RecordKind::Cancel, size_of::<CancelRecord>(), 80),
    (RecordKind::Replace, size_of::<ReplaceRecord>(), 96),
    (RecordKind::Report, size_of::<ReportRecord>(), 112),
    (RecordKind::Boot, size_of::<Boot>(), 40),
    (RecordKind::Venue, size_of::<VenueRules>(), 16),
    (RecordKind::Session, size_of::<SessionRules>(), 48),
    (RecordKind::Grant, size_of::<Grant>(), 8),
    (RecordKind::DefinitionEnd, size_of::<DefinitionEnd>(), 8),
    (RecordKind::VenueConnection, size_of::<VenueConnection>(), 8),
    (RecordKind::SessionConnection, size_of::<SessionConnection>(), 8),
    (RecordKind::UnsentRequest, size_of::<UnsentRequest>(), 72),
    (RecordKind::Release, size_of::<Release>(), 40),
    (RecordKind::MessageLoss, size_of::<MessageLoss>(), 16),
    (RecordKind::Resolve, size_of::<Resolve>(), 56),
    (RecordKind::QueryStatus, size_of::<QueryStatus>(), 16),
    (RecordKind::GapTimer, size_of::<GapTimer>(), 8),
    (RecordKind::DayEnd, size_of::<DayEnd>(), 8),
    (RecordKind::Status, size_of::<StatusRecord>(), 80),
    (RecordKind::MassCancel, size_of::<MassCancelRecord>(), 72),
    (RecordKind::Lane, size_of::<LaneRecord>(), 24),
    (RecordKind::JournalRollover, size_of::<JournalRollover>(), 8),
    (RecordKind::SymbolLimits, size_of::<SymbolLimits>(), 32),
    (RecordKind::Firm, size_of::<FirmLimits>(), 56),
    (RecordKind::Conditional, size_of::<ConditionalRecord>(), 128),
    (RecordKind::ReplaceConditional, size_of::<ReplaceConditionalRecord>(), 128),
    (RecordKind::TriggerFired, size_of::<TriggerFired>(), 48),
    (RecordKind::CancelScope, size_of::<CancelScope>(), 16),
    (RecordKind::EnterOrder, size_of::<EnterOrder>(), 96),
    (RecordKind::EnterFill, size_of::<EnterFill>(), 80),
    (RecordKind::Reject, size_of::<RejectRule>(), 8),
    (RecordKind::Name, size_of::<NameRecord>(), 72),
    (RecordKind::Reconcile, size_of::<Reconcile>(), 40),
    (RecordKind::EnterPosition, size_of::<EnterPosition>(), 64),
    (RecordKind::ReportDetail, size_of::<DetailRecord>(), 144),
    (RecordKind::Extended, size_of::<ExtendedRecord>(), 136),
    (RecordKind::ByTextId, size_of::<TextIdRecord>(), 104),
    (RecordKind::ExpiryTimer, size_of::<ExpiryTimer>(), 8),
];

/// Definitions that core version 3 wrote with fewer bytes, which are read, too.
const OLDER: &[(RecordKind, usize)] = &[
    (RecordKind::Instrument, 32),
    (RecordKind::Instrument, 104),
    (RecordKind::Account, 88),
    (RecordKind::Account, 144),
    (RecordKind::Session, 8),
];

/// Records that are not inputs.
const NOTES: &[RecordKind] = &[
    RecordKind::JournalStart,
    RecordKind::Digest,
    RecordKind::JournalStop,
    RecordKind::Lane,
    RecordKind::JournalRollover,
    RecordKind::Name,
];

#[test]
fn sizes_are_those_of_the_journal() {
    assert_eq!(SIZES.iter().map(|&(kind, ..)| kind).collect::<Vec<_>>(), RecordKind::ALL);
    for &(kind, size, expected) in SIZES {
        assert_eq!(size, expected, "{kind:?}");
        assert!(size <= RECORD_BYTES && size % 8 == 0, "{kind:?}");
    }
    assert_eq!(size_of::<Envelope>(), 40);
}

#[test]
fn codes_are_those_of_the_journal() {
    let codes: Vec<u8> = (64..=107).collect();
    assert_eq!(RecordKind::ALL.iter().map(|kind| kind.code()).collect::<Vec<_>>(), codes);
    for (&code, kind) in codes.iter().zip(RecordKind::ALL) {
        assert_eq!(RecordKind::from_code(code), Some(*kind));
    }
    for code in (0..=255).filter(|code| !codes.contains(code)) {
        assert_eq!(RecordKind::from_code(code), None);
        assert_eq!(Input::read(code, &[]), Err(RecordError::Kind(code)));
    }
}

/// The reader does not validate codes: the core does.
#[test]
fn a_record_of_another_length_is_refused() {
    for fill in [0, 0x55, 0xff] {
        for &(kind, size, _) in SIZES {
            for length in 0..=RECORD_BYTES {
                let read = Input::read(kind.code(), &vec![fill; length]);
                let is_input = !NOTES.contains(&kind);
                match length == size || OLDER.contains(&(kind, length)) {
                    true => assert_eq!(read.map(|input| input.is_some()), Ok(is_input), "{kind:?}"),
                    false => assert_eq!(read, Err(RecordError::Length { kind: kind.code(), length }), "{kind:?}"),
                }
            }
        }
    }
}

#[test]
fn a_written_record_reads_back_equal() {
    let mut world = World::new(seed());
    let mut kinds = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        let (_, written) = world.step();
        let mut buffer = [0; RECORD_BYTES];
        let bytes = written.write(&mut buffer);
        kinds.insert(written.kind());
        assert_eq!(Input::read(written.kind().code(), bytes), Ok(Some(written)));
    }
    let request = |request| Input::Request { envelope: Envelope { session: 7, ..Default::default() }, request };
    // Inputs that an admin enters, those of text ids and end times, and those that change no state, have tests of their
    // own.
    for entered in [
        Input::EnterOrder(EnterOrder { session: 7, ..Default::default() }),
        Input::EnterFill(EnterFill::default()),
        Input::EnterPosition(EnterPosition { adjusts: 1, ..Default::default() }),
        Input::ReportDetail(DetailRecord::new_zeroed()),
        Input::ExpiryTimer(ExpiryTimer::default()),
        request(Request::Extended(ExtendedOrder::default())),
        request(Request::ByTextId(TextIdRequest::default())),
    ] {
        let mut buffer = [0; RECORD_BYTES];
        kinds.insert(entered.kind());
        assert_eq!(Input::read(entered.kind().code(), entered.write(&mut buffer)), Ok(Some(entered)));
    }
    assert_eq!(kinds.len() + NOTES.len(), RecordKind::ALL.len(), "not every kind was drawn: {kinds:?}");
}

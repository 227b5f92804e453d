//! The journal's structs keep their sizes, and inputs their bytes.

use tickpath_orders::{
    AccountLimits, CancelRecord, Digest, Envelope, Input, Instrument, Kill, NewRecord, RecordError, RecordKind,
    ReplaceRecord, ReportRecord, Start, Stop,
};

use crate::dice::{Dice, input, seed};

#[test]
fn sizes_are_those_of_the_journal() {
    for (name, size, expected) in [
        ("Start", size_of::<Start>(), 16),
        ("Instrument", size_of::<Instrument>(), 32),
        ("AccountLimits", size_of::<AccountLimits>(), 64),
        ("Kill", size_of::<Kill>(), 8),
        ("Digest", size_of::<Digest>(), 24),
        ("Stop", size_of::<Stop>(), 16),
        ("Envelope", size_of::<Envelope>(), 40),
        ("NewRecord", size_of::<NewRecord>(), 88),
        ("CancelRecord", size_of::<CancelRecord>(), 80),
        ("ReplaceRecord", size_of::<ReplaceRecord>(), 96),
        ("ReportRecord", size_of::<ReportRecord>(), 104),
    ] {
        assert_eq!(size, expected, "{name}");
    }
}

#[test]
fn codes_are_those_of_the_journal() {
    for (place, kind) in RecordKind::ALL.iter().enumerate() {
        assert_eq!(usize::from(kind.code()), 64 + place);
        assert_eq!(RecordKind::from_code(kind.code()), Some(*kind));
    }
    for code in [0, 63, 74, 255] {
        assert_eq!(RecordKind::from_code(code), None);
    }
}

#[test]
fn what_is_written_is_read() {
    let mut dice = Dice::new(seed());
    for sequence in 0..10_000 {
        let written = input(&mut dice, sequence);
        let mut buffer = [0; 128];
        let bytes = written.write(&mut buffer);
        match Input::read(written.kind().code(), bytes) {
            Ok(read) => assert_eq!(read, Some(written)),
            Err(RecordError::Message(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn records_that_are_no_inputs_are_passed_over() {
    for (kind, length) in [(RecordKind::Start, 16), (RecordKind::Digest, 24), (RecordKind::Stop, 16)] {
        assert_eq!(Input::read(kind.code(), &[0; 32][..length]), Ok(None));
        assert_eq!(Input::read(kind.code(), &[0; 7]), Err(RecordError::Length { kind: kind.code(), length: 7 }));
    }
    assert_eq!(Input::read(74, &[]), Err(RecordError::Kind(74)));
}

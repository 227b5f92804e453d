//! Files that are damaged, cut off, empty or none of ours.

use std::ops::ControlFlow;

use proptest::prelude::*;
use tickpath_market::BookLevel;
use tickpath_recordings::{DataFormat, MarketFile, MarketFileError, MarketMessage};

use crate::files::{folder, gzip, read, read_as, read_path, zip};

/// Returns a book of this many messages of two rows, in the form of tardis.dev.
fn book(messages: u64) -> String {
    let header = "exchange,symbol,timestamp,local_timestamp,is_snapshot,side,price,amount\n";
    let rows = (1..=messages)
        .map(|us| format!("x,BTCUSDT,{us},{us},false,bid,61800.{us},1\nx,BTCUSDT,{us},{us},false,ask,61801.{us},2\n"));
    header.to_owned() + &rows.collect::<String>()
}

#[test]
fn a_gzip_stream_that_is_cut_off_is_reported_and_its_last_row_is_not_used() {
    let whole = read("book.csv", book(2_000).as_bytes()).unwrap();
    let packed = gzip(book(2_000).as_bytes());
    let mut most = 0;
    for cut in (10..packed.len()).step_by(packed.len() / 40).chain([packed.len() - 8, packed.len() - 1]) {
        let Ok(read) = read("book.csv.gz", &packed[..cut]) else { continue };
        assert!(read.counts.truncated && read.counts.to_string().contains("cut off before its end"), "cut at {cut}");
        let (last, before) = read.messages.split_last().expect("a file without messages is an error");
        assert_eq!(before, &whole.messages[..before.len()], "cut at {cut}");
        let MarketMessage::Level(level) = last.2 else { panic!("{last:?}") };
        assert_eq!(level.flags & BookLevel::LAST, 0, "cut at {cut}");
        most = most.max(read.messages.len());
    }
    assert_eq!(most, whole.messages.len(), "only the checksum was missing");
}

#[test]
fn a_damaged_checksum_is_an_error() {
    let mut packed = gzip(book(10).as_bytes());
    let checksum = packed.len() - 8;
    packed[checksum] ^= 1;
    let error = read("book.csv.gz", &packed).unwrap_err();
    assert!(matches!(error, MarketFileError::Read { unit: "line", row: 22, .. }), "{error:?}");

    let text = book(10);
    let mut archive = zip(&[("book.csv", text.as_bytes())]);
    let place = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").expect("a central directory") + 16;
    archive[place] ^= 1;
    let error = read("book.zip", &archive).unwrap_err();
    assert!(matches!(error, MarketFileError::Read { .. }), "{error:?}");
}

#[test]
fn an_archive_that_is_cut_off_cannot_be_read() {
    let archive = zip(&[("book.csv", book(100).as_bytes())]);
    for cut in [5, 40, archive.len() / 2, archive.len() - 30, archive.len() - 1] {
        let error = read("book.zip", &archive[..cut]).unwrap_err().to_string();
        assert!(error.contains("book.zip") && error.contains("fetch it anew"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_file_without_messages_is_an_error_with_its_bad_lines() {
    let header = "exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n";
    let text = header.to_owned() + &"nothing\n".repeat(30);
    match read("quotes.csv", text.as_bytes()) {
        Err(MarketFileError::NoMessage { format: DataFormat::TardisQuotes, counts, .. }) => {
            assert_eq!((counts.rows, counts.bad, counts.bad_rows.len()), (31, 30, 10));
            assert_eq!(counts.bad_rows[0].0, 2);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_no_format_are_named() {
    let packed = gzip(b"1,2,3\n");
    let files: [&[u8]; 6] = [b"", b"\n", b"hello, world\n", b"\x00\x01\x02", &packed, b"\x1f\x8b\x08"];
    for bytes in files {
        let error = read("mine.txt", bytes).unwrap_err().to_string();
        assert!(error.contains("mine.txt is in no known format") && error.contains("binance-trades"), "{error}");
    }
    let folder = folder();
    for path in [folder.path().join("missing.csv"), folder.path().to_owned()] {
        let error = read_path(&path, None).unwrap_err();
        assert!(matches!(error, MarketFileError::Open(..)), "{error:?}");
    }
    for format in [DataFormat::TardisBook, DataFormat::Csv] {
        let error = read_as("mine.txt", b"hello, world\n1,2\n", Some(format)).unwrap_err().to_string();
        assert!(error.contains("its first line names no column"), "{error}");
    }
}

#[test]
fn a_taker_ends_the_reading() {
    let folder = folder();
    let path = folder.path().join("book.csv");
    std::fs::write(&path, book(1_000)).unwrap();
    let mut taken = 0;
    let counts = MarketFile::open(&path, None).unwrap().read(&mut |_, _, _| {
        taken += 1;
        if taken < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!((taken, counts.unwrap().levels), (5, 5));
}

/// Returns the first bytes of a file; those of DBN name the length of its metadata, too.
fn head() -> impl Strategy<Value = &'static [u8]> {
    let heads: [&[u8]; 4] = [b"", b"\x93NUMPY\x01\x00", b"DBN\x03\x80\x00\x00\x00", b"PK\x03\x04"];
    proptest::sample::select(heads.to_vec())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_are_an_error(
        head in head(),
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        format in proptest::option::of(proptest::sample::select(DataFormat::ALL.to_vec())),
    ) {
        let _ = read_as("BTC-trades-1.csv", &[head, bytes.as_slice()].concat(), format);
    }
}

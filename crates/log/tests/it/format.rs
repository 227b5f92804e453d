//! The bytes on the disk against the table in `docs/log-format.md`.

use std::collections::BTreeMap;
use std::fs;

use tickpath_clock::Calibration;
use tickpath_log::{
    FORMAT_VERSION, FRAME_HEADER_BYTES, HEADER_BYTES, LogOwner, MAX_PAYLOAD_BYTES, MAX_PULLERS, MAX_READERS,
    OverflowPolicy, QueueDelivery, Reader, ReaderStart, Registration, SEGMENT_HEADER_BYTES,
};
use zerocopy::IntoBytes;

use crate::{ScratchLog, payload, pull};

const PAGE: &str = include_str!("../../../../docs/log-format.md");

/// Offset and length of each field.
type PageFields = BTreeMap<&'static str, (usize, usize)>;

#[test]
fn the_page_names_every_byte_of_the_header() {
    let fields = fields();
    let mut header: Vec<_> = fields.iter().filter(|(name, _)| name.starts_with("header.")).map(|(_, &at)| at).collect();
    header.sort_unstable();
    let end = header.iter().fold(0, |end, &(offset, bytes)| {
        assert_eq!(offset, end, "a hole, or an overlap");
        offset + bytes
    });
    assert_eq!(end, 136);
    assert!(end <= HEADER_BYTES);
}

#[test]
fn files_match_the_format_page() {
    let fields = fields();
    for (policy, code, align, segments) in
        [(OverflowPolicy::Overwrite, 1, 64, 3), (OverflowPolicy::Fail, 2, 64, 3), (OverflowPolicy::Keep, 3, 16, 0_u32)]
    {
        for (scratch, crc) in [(ScratchLog::on_disk(policy, 3), 1), (ScratchLog::shared(policy, 3), 0)] {
            let scratch = owned(scratch);
            let mut writer = scratch.writer();
            let mut reader = scratch.reader(ReaderStart::Now);
            for (sequence, length) in [(0, 5), (1, 48)] {
                writer.publish(77 + sequence, 33, &payload(sequence, length)).expect("there is room");
                reader.next().expect("the log is sound");
            }
            writer.sync().expect("the disk is there");
            let data = fs::read(scratch.data()).expect("it can be read");
            let file = FileBytes { bytes: &data, fields: &fields };
            file.header(code, segments, align, crc);
            file.marks(policy == OverflowPolicy::Keep);
            file.segment(align as usize, crc == 1);
            let control = fs::read(scratch.place().dir().join("control")).expect("it can be read");
            FileBytes { bytes: &control, fields: &fields }.control();
        }
    }
}

fn owned(mut scratch: ScratchLog) -> ScratchLog {
    scratch.config.owner = LogOwner { journal: 71, incarnation: 72, base: 73 };
    scratch
}

/// For a log with a mandatory reader, made for the numbers from 5 on: while that reader is there, and away.
#[test]
fn a_mandatory_reader_matches_the_format_page() {
    let fields = fields();
    let mut scratch = ScratchLog::shared(OverflowPolicy::Fail, 3);
    (scratch.config.mandatory, scratch.config.first_sequence) = (true, 5);
    let read = |file: &str| fs::read(scratch.place().dir().join(file)).expect("it can be read");
    let mut writer = scratch.writer();
    let data = FileBytes { bytes: &read("data"), fields: &fields };
    assert_eq!(data.field(0, "header.mandatory"), [1, 0, 0, 0]);
    assert_eq!(data.word(0, "header.first_sequence"), 5);
    for (state, readers) in [(2, 0), (1, 1), (2, 0)] {
        let _reader = (state == 1).then(|| {
            let reader = Reader::open(scratch.place(), ReaderStart::Cursor, Registration::Mandatory);
            writer.publish(0, 16, b"x").expect("it is read");
            reader.expect("it is there")
        });
        let control = FileBytes { bytes: &read("control"), fields: &fields };
        let cursor = control.fields["control.cursors"].0;
        let words = ["control.mandatory", "control.readers"].map(|name| control.word(0, name));
        assert_eq!((words, control.word(cursor, "cursor.state")), ([1, readers], state));
        assert_eq!(control.word(cursor, "cursor.sequence"), 5);
        assert_eq!(control.word(cursor, "cursor.pid") != 0, state == 1);
    }
}

/// Four messages: the first puller holds number 0, and the second has taken number 1.
#[test]
fn the_files_of_a_queue_match_the_format_page() {
    let fields = fields();
    let scratch = ScratchLog::shared(OverflowPolicy::Fail, 3);
    let read = |file: &str| fs::read(scratch.place().dir().join(file)).expect("it can be read");
    let group = || FileBytes { bytes: &read("control"), fields: &fields }.word(0, "control.group");
    drop(scratch.writer());
    assert_eq!(group(), 0, "it is no queue yet");
    let mut writer = scratch.queue();
    assert_eq!(group(), 1);
    (0..4).for_each(|sequence| assert_eq!(writer.publish(0, 16, &payload(sequence, 9)).expect("room"), sequence));
    let [mut first, mut second] = [QueueDelivery::AtLeastOnce, QueueDelivery::AtMostOnce].map(|d| scratch.puller(d));
    assert_eq!(pull(&mut first, 1), [(0, false)]);
    let (claimed, taken) = (1 | 1 << 24, 2 | 1 << 2 | 1 << 24);
    let pulled = second.pull(1, |_| {
        let (file, fields) = (read("queue"), &fields);
        FileBytes { bytes: &file, fields }.queue([claimed, taken, 0, 0], [5, 5, 0], 0);
    });
    assert_eq!(pulled.expect("the queue is sound"), 1);
    assert_eq!(group(), 1, "number 0 is not done");
    first.acknowledge();
    assert_eq!(group(), 3);
    drop(second);
    FileBytes { bytes: &read("queue"), fields: &fields }.queue([4, 4, 0, 0], [5, 4, 0], 1);
}

#[test]
fn public_constants_match_the_format_page() {
    let fields = fields();
    assert_eq!(FORMAT_VERSION, 2);
    assert!(PAGE.contains(&format!("│ header, {HEADER_BYTES} │")) && PAGE.contains("format version 2"));
    assert!(PAGE.contains(&format!("calibration │ … {SEGMENT_HEADER_BYTES} │")));
    assert_eq!(fields["frame.payload"].0, FRAME_HEADER_BYTES);
    assert!(PAGE.contains(&format!("{MAX_READERS} of them")) && PAGE.contains(&format!("{MAX_PULLERS} of them")));
    assert_eq!(MAX_PAYLOAD_BYTES, (1 << 24) - 1);
}

struct FileBytes<'a> {
    bytes: &'a [u8],
    fields: &'a PageFields,
}

impl FileBytes<'_> {
    fn header(&self, policy: u32, segments: u32, align: u32, crc: u32) {
        assert_eq!(self.field(0, "header.magic"), b"TICKLOG\0");
        for (name, expected) in [
            ("header.version", FORMAT_VERSION),
            ("header.policy", policy),
            ("header.segment_bytes", 4096),
            ("header.segments", segments),
            ("header.frame_align", align),
            ("header.crc", crc),
            ("header.checksum", crc32c::crc32c(&self.bytes[..self.fields["header.checksum"].0])),
            ("header.mandatory", 0),
        ] {
            assert_eq!(self.field(0, name), expected.to_le_bytes(), "{name}");
        }
        assert_eq!(self.field(0, "header.calibration"), Calibration::nanoseconds().as_bytes());
        let [journal, incarnation, base] = ["journal", "incarnation", "base"].map(|name| format!("header.{name}"));
        let owner = [journal, incarnation, base].map(|name| self.word(0, &name));
        assert_eq!((owner, self.word(0, "header.first_sequence")), ([71, 72, 73], 0));
    }

    /// Checks the marks of a log that grows: one segment was opened, and two messages are on the disk.
    fn marks(&self, grows: bool) {
        for (mark, bytes) in [("opened", 24), ("firm", 24)] {
            let start = self.fields[if mark == "opened" { "opened.boot_id" } else { "firm.segment" }].0;
            let sum = if grows { crc32c::crc32c(&self.bytes[start..start + bytes]) } else { 0 };
            assert_eq!(self.field(0, &format!("{mark}.checksum")), sum.to_le_bytes(), "{mark}");
        }
        assert_eq!(self.field(0, "opened.boot_id"), [0; 16]);
        assert_eq!(self.word(0, "opened.segments"), u64::from(grows));
        let behind = if self.bytes[28] == 1 { 128 + 32 + 80 } else { 128 + 32 + 64 };
        let firm = ["segment", "offset", "sequence"].map(|name| self.word(0, &format!("firm.{name}")));
        assert_eq!(firm, if grows { [0, behind, 2] } else { [0; 3] });
    }

    /// Checks the first segment, with messages of 5 and 48 bytes.
    fn segment(&self, align: usize, crc: bool) {
        let start = HEADER_BYTES;
        assert_eq!(self.word(start, "segment.generation"), 2);
        assert_eq!(self.word(start, "segment.base_sequence"), 0);
        assert_eq!(self.field(start, "segment.calibration"), Calibration::nanoseconds().as_bytes());
        let mut at = start + SEGMENT_HEADER_BYTES;
        for (sequence, length) in [(0, 5), (1, 48)] {
            let commit = sequence << 32 | 33 << 24 | length as u64;
            assert_eq!(self.word(at, "frame.commit"), commit);
            assert_eq!(self.word(at, "frame.stamp"), 77 + sequence);
            let payload_at = at + self.fields["frame.payload"].0;
            let mut padded = payload(sequence, length);
            padded.resize(length.next_multiple_of(8), 0);
            let behind = payload_at + padded.len();
            assert_eq!(self.bytes[payload_at..behind], padded);
            if crc {
                let summed = [&self.bytes[at..payload_at], &padded[..length]].concat();
                let sum = u64::from(crc32c::crc32c(&summed));
                assert_eq!(self.bytes[behind..behind + 8], sum.to_le_bytes());
            }
            at += (behind - at + if crc { 8 } else { 0 }).next_multiple_of(align);
        }
        assert_eq!(self.word(at, "frame.commit"), 0, "behind the last frame lies a zero");
    }

    /// Checks the control file with one registered reader, which has read the first message and holds the second.
    fn control(&self) {
        assert_eq!(self.field(0, "control.magic"), b"TICKCTL1");
        assert_eq!(self.field(0, "control.sleepers"), [0; 4]);
        assert_eq!((self.word(0, "control.readers"), self.word(0, "control.mandatory")), (1, 0));
        assert!([1, 2].contains(&self.word(0, "control.barrier")));
        let (cursors, cursor_bytes) = self.fields["control.cursors"];
        assert_eq!(self.bytes.len(), cursors + MAX_READERS * cursor_bytes);
        assert_eq!(self.word(cursors, "cursor.state"), 1);
        assert_eq!(self.word(cursors, "cursor.sequence"), 1);
        assert_eq!(self.word(cursors, "cursor.pid"), u64::from(std::process::id()));
        assert_eq!(self.word(cursors + cursor_bytes, "cursor.state"), 0);
    }

    /// Checks a ring of three segments of a page, which holds up to 186 frames: the first owner words, the first
    /// slots, and the number of requests to search again.
    fn queue(&self, owners: [u64; 4], slots: [u64; 3], rescan_count: u64) {
        assert_eq!(self.field(0, "queue.magic"), b"TICKQUE1");
        assert_eq!(self.word(0, "queue.capacity"), 256);
        assert_eq!(self.word(0, "queue.rescan_count"), rescan_count);
        let (slots_at, slot_bytes) = self.fields["queue.slots"];
        let (owners_at, owner_bytes) = self.fields["queue.owners"];
        assert_eq!(owners_at, slots_at + MAX_PULLERS * slot_bytes);
        assert_eq!(self.bytes.len(), owners_at + 256 * owner_bytes);
        assert_eq!([0, 1, 2].map(|n| self.word(slots_at + n * slot_bytes, "slot.epoch")), slots);
        assert_eq!([0, 1, 2, 3].map(|n| self.word(n * owner_bytes, "queue.owners")), owners);
    }

    fn field(&self, from: usize, name: &str) -> &[u8] {
        let (offset, bytes) = self.fields[name];
        &self.bytes[from + offset..from + offset + bytes]
    }

    fn word(&self, from: usize, name: &str) -> u64 {
        u64::from_le_bytes(self.field(from, name).try_into().expect("a field of eight bytes"))
    }
}

/// Returns the rows between the marks of the page.
fn fields() -> PageFields {
    let (_, table) = PAGE.split_once("<!-- offsets -->").expect("the table has a start");
    let (table, _) = table.split_once("<!-- /offsets -->").expect("the table has an end");
    let rows = table.trim().lines().skip(2).map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let number = |cell: usize| cells[cell].parse::<usize>().expect("offset and length are numbers");
        (cells[1], (number(2), number(3)))
    });
    rows.collect()
}

//! The header of a numpy array in a file: of the one array that is read and written here, the events of hftbacktest.

use std::io::Read;

use crate::read_fault::ReadFault;

/// The first bytes of an array.
pub(crate) const NPY_MAGIC: &[u8] = b"\x93NUMPY";
/// Fields of an event, of eight bytes each.
const FIELDS: [(&str, &str); 8] = [
    ("ev", "<u8"),
    ("exch_ts", "<i8"),
    ("local_ts", "<i8"),
    ("px", "<f8"),
    ("qty", "<f8"),
    ("order_id", "<u8"),
    ("ival", "<i8"),
    ("fval", "<f8"),
];
/// The header is padded, so that the data begins at a multiple of this many bytes.
const ALIGNMENT: usize = 64;
/// Max length of a header's text that is read.
const MAX_TEXT_BYTES: u32 = 1 << 20;

/// Reads the header; returns the number of events.
pub(crate) fn read_header(input: &mut impl Read) -> Result<u64, ReadFault> {
    let mut begin = [0; 8];
    input.read_exact(&mut begin)?;
    if !begin.starts_with(NPY_MAGIC) {
        return Err(form("it does not begin as a numpy array"));
    }
    let length = if begin[6] == 1 {
        let mut bytes = [0; 2];
        input.read_exact(&mut bytes)?;
        u32::from(u16::from_le_bytes(bytes))
    } else {
        let mut bytes = [0; 4];
        input.read_exact(&mut bytes)?;
        u32::from_le_bytes(bytes)
    };
    if length > MAX_TEXT_BYTES {
        return Err(form("its header is longer than 1 MiB"));
    }
    let mut text = vec![0; length as usize];
    input.read_exact(&mut text)?;
    let events = events_of(&String::from_utf8_lossy(&text));
    events.ok_or_else(|| form(&format!("its array is no list of events with the fields {}", fields())))
}

/// Returns the header of an array with this many events.
pub(crate) fn header(events: u64) -> Vec<u8> {
    let mut text = format!("{{'descr': {}, 'fortran_order': False, 'shape': ({events},), }}", fields());
    let begin = NPY_MAGIC.len() + 4;
    let padded = (begin + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.push_str(&" ".repeat(padded - begin - text.len() - 1));
    text.push('\n');
    let mut header = NPY_MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&(text.len() as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header
}

/// Returns the number of events by the text of a header; none if its array is another one.
fn events_of(text: &str) -> Option<u64> {
    let squeeze = |text: &str| text.split_whitespace().collect::<String>().replace(",]", "]");
    let text = squeeze(text);
    let shape = text.split_once("'shape':(")?.1.split_once(')')?.0;
    let events = shape.trim_end_matches(',').parse().ok()?;
    let is_ours = text.contains(&format!("'descr':{}", squeeze(&fields()))) && text.contains("'fortran_order':False");
    is_ours.then_some(events)
}

/// Returns the fields as numpy spells them.
fn fields() -> String {
    let fields = FIELDS.map(|(name, kind)| format!("('{name}', '{kind}')"));
    format!("[{}]", fields.join(", "))
}

fn form(why: &str) -> ReadFault {
    ReadFault::Form(why.to_owned())
}

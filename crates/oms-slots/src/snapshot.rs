//! The byte form of a snapshot: numbers and lists, one behind the other.
//!
//! ```text
//!   layout version 4 · rules version 4                             the digits are lengths in bytes
//!   numbers   one struct each                                      in the order in which the program saves them
//!   lists     bytes of an item 4 · zero 4 · items 8 · the items    in the same order
//! ```
//! Items are the structs that the program works with, so a snapshot loads at memory speed. The length of an item
//! precedes each list. Structs grow at their end, and a zero there means unset: an item of an older layout is read
//! with zeros behind it, and lists that the oldest layout lacks stay empty. A snapshot has no checksum of its own,
//! because its store has one: [`SnapshotReader`] refuses only bytes that no [`SnapshotWriter`] wrote.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// The layout that [`SnapshotWriter`] writes.
const LAYOUT: u32 = 4;
/// The oldest layout that [`SnapshotReader`] reads.
const OLDEST_LAYOUT: u32 = 1;

/// The first layout with the list of the extensions of orders.
const EXTENSIONS_LAYOUT: u32 = 4;

/// Items of a list that are read at a time.
const ITEMS_PER_READ: usize = 4096;

/// Errors of bytes that are not a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes end early.
    #[error("the snapshot ends early; start without it, from the journal")]
    Short,
    /// Another version wrote the snapshot, in a layout that this version has no code for.
    #[error("the snapshot has layout {found} instead of {LAYOUT}; start without it, or with the build that wrote it")]
    Layout {
        /// The version of the snapshot's layout.
        found: u32,
    },
    /// A list or a struct of the snapshot is not valid.
    #[error("the snapshot is damaged; start without it, from the journal")]
    Damaged,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SavedListHeader {
    item_bytes: u32,
    reserved: u32,
    items: u64,
}

/// A writer of a snapshot, which emits the bytes in pieces.
pub struct SnapshotWriter<'a>(&'a mut dyn FnMut(&[u8]));

/// A reader of a snapshot, which loads everything in the order in which it was saved.
pub struct SnapshotReader<'a> {
    fill: &'a mut dyn FnMut(&mut [u8]) -> bool,
    layout: u32,
}

/// The head of a list: the number of its items and the length of each.
pub(crate) struct ListHeader {
    pub(crate) items: u64,
    item_bytes: usize,
}

impl<'a> SnapshotWriter<'a> {
    /// Begins a snapshot with two versions: that of the layout, and that of the rules that made the state.
    pub fn begin(emit: &'a mut dyn FnMut(&[u8]), rules_version: u32) -> Self {
        let mut save = Self(emit);
        save.write_item(&[LAYOUT, rules_version]);
        save
    }

    /// Appends a number or a struct.
    pub fn write_item<T: IntoBytes + Immutable>(&mut self, item: &T) {
        (self.0)(item.as_bytes());
    }

    /// Appends the head of a list; its items follow, in one or more pieces.
    pub(crate) fn write_list_header<T>(&mut self, items: usize) {
        self.write_item(&SavedListHeader { item_bytes: size_of::<T>() as u32, reserved: 0, items: items as u64 });
    }

    /// Appends items of the list whose head was appended last.
    pub(crate) fn write_items<T: IntoBytes + Immutable>(&mut self, items: &[T]) {
        (self.0)(items.as_bytes());
    }

    /// Appends a list.
    pub fn write_list<T: IntoBytes + Immutable>(&mut self, items: &[T]) {
        self.write_list_header::<T>(items.len());
        self.write_items(items);
    }
}

impl<'a> SnapshotReader<'a> {
    /// Begins to read a snapshot: `fill` fills a piece, or returns false if there are not enough bytes.
    pub fn begin(fill: &'a mut dyn FnMut(&mut [u8]) -> bool) -> Result<Self, SnapshotError> {
        let mut load = Self { fill, layout: LAYOUT };
        // The version of the rules has no influence on the layout.
        let [found, _rules_version]: [u32; 2] = load.read_item()?;
        if !(OLDEST_LAYOUT..=LAYOUT).contains(&found) {
            return Err(SnapshotError::Layout { found });
        }
        load.layout = found;
        Ok(load)
    }

    /// Returns whether the snapshot has the oldest layout, which has fewer lists.
    pub fn lacks_lists(&self) -> bool {
        self.layout == OLDEST_LAYOUT
    }

    /// Returns whether the snapshot has the list of the extensions of orders.
    pub fn has_extensions(&self) -> bool {
        self.layout >= EXTENSIONS_LAYOUT
    }

    /// Reads a number or a struct.
    pub fn read_item<T: TryFromBytes + IntoBytes + KnownLayout + Immutable>(&mut self) -> Result<T, SnapshotError> {
        let mut bytes = vec![0; size_of::<T>()];
        self.read_bytes(&mut bytes)?;
        T::try_read_from_bytes(&bytes).map_err(|_| SnapshotError::Damaged)
    }

    pub(crate) fn read_list_header<T>(&mut self) -> Result<ListHeader, SnapshotError> {
        let head: SavedListHeader = self.read_item()?;
        let item_bytes = head.item_bytes as usize;
        let is_older = self.layout < LAYOUT && (1..size_of::<T>()).contains(&item_bytes);
        match item_bytes == size_of::<T>() || is_older {
            true => Ok(ListHeader { items: head.items, item_bytes }),
            false => Err(SnapshotError::Damaged),
        }
    }

    /// Reads the items of a list in pieces of `at_once`, so that a wrong count runs out of bytes, not of memory.
    pub(crate) fn read_items<T>(
        &mut self,
        ListHeader { items, item_bytes }: ListHeader,
        at_once: usize,
        mut take: impl FnMut(&[T]),
    ) -> Result<(), SnapshotError>
    where
        T: TryFromBytes + KnownLayout + Immutable,
    {
        let max = items.min(at_once as u64) as usize;
        // A cache line more, so that the first item can be aligned.
        let mut bytes = vec![0; max * size_of::<T>() + 64];
        let from = bytes.as_ptr().align_offset(align_of::<T>());
        let mut left = items;
        while left > 0 {
            let count = left.min(at_once as u64) as usize;
            let piece = &mut bytes[from..from + count * size_of::<T>()];
            match item_bytes == size_of::<T>() {
                true => self.read_bytes(piece)?,
                false => {
                    piece.fill(0);
                    piece
                        .chunks_exact_mut(size_of::<T>())
                        .try_for_each(|item| self.read_bytes(&mut item[..item_bytes]))?;
                }
            }
            take(<[T]>::try_ref_from_bytes(piece).map_err(|_| SnapshotError::Damaged)?);
            left -= count as u64;
        }
        Ok(())
    }

    /// Reads a list.
    pub fn read_list<T>(&mut self) -> Result<Vec<T>, SnapshotError>
    where
        T: TryFromBytes + KnownLayout + Immutable + Copy,
    {
        let (head, mut list) = (self.read_list_header::<T>()?, Vec::new());
        self.read_items(head, ITEMS_PER_READ, |piece| list.extend_from_slice(piece))?;
        Ok(list)
    }

    fn read_bytes(&mut self, piece: &mut [u8]) -> Result<(), SnapshotError> {
        if (self.fill)(piece) { Ok(()) } else { Err(SnapshotError::Short) }
    }
}

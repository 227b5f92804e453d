//! How a core is laid out as bytes.
//!
//! ```text
//!   layout version 4 · core version 4      each in so many bytes
//!   state     keys, epoch, boot, counts, digest: one struct each
//!   lists     bytes of an item 4 · zero 4 · items 8 · the items    of each list, in the order of `Core::save`
//! ```
//! Items are the structs that the core works with, so a snapshot is read at the speed of memory. Each list says how long
//! its items are. Structs grow at their end, and zero says nothing: an item of an older layout is read with zeros behind it,
//! and lists that it did not have are empty.
//! Whoever stores a snapshot sums it up: this module only refuses what no core has written.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// The version of how a core is laid out here.
const LAYOUT: u32 = 2;
/// The layout of core version 3, which is read, too.
const OLDER: u32 = 1;

/// Items that are read at once.
const CHUNK: usize = 4096;

/// Why bytes are no snapshot of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It ends early.
    #[error("the snapshot ends early; start without it, from the journal")]
    Short,
    /// Another version has written it, and this one has no code for it.
    #[error(
        "the snapshot is laid out as version {found}, this is version {LAYOUT}; start without it, or with the build that wrote it"
    )]
    Layout {
        /// The version of its layout.
        found: u32,
    },
    /// A list or a struct in it is none.
    #[error("the snapshot is damaged; start without it, from the journal")]
    Damaged,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ListHead {
    item_bytes: u32,
    reserved: u32,
    items: u64,
}

/// Takes the bytes of a snapshot.
pub(crate) struct Save<'a>(&'a mut dyn FnMut(&[u8]));

/// Gives them again.
pub(crate) struct Load<'a> {
    fill: &'a mut dyn FnMut(&mut [u8]) -> bool,
    layout: u32,
}

/// How a list that follows is laid out.
pub(crate) struct List {
    pub(crate) items: u64,
    item_bytes: usize,
}

impl<'a> Save<'a> {
    /// Begins with the versions: of the layout, and of the rules that made the state.
    pub(crate) fn begin(emit: &'a mut dyn FnMut(&[u8]), core_version: u32) -> Self {
        let mut save = Self(emit);
        save.item(&[LAYOUT, core_version]);
        save
    }

    pub(crate) fn item<T: IntoBytes + Immutable>(&mut self, item: &T) {
        (self.0)(item.as_bytes());
    }

    /// How many there are; they follow, one by one or in pieces.
    pub(crate) fn head<T>(&mut self, items: usize) {
        self.item(&ListHead { item_bytes: size_of::<T>() as u32, reserved: 0, items: items as u64 });
    }

    pub(crate) fn items<T: IntoBytes + Immutable>(&mut self, items: &[T]) {
        (self.0)(items.as_bytes());
    }

    pub(crate) fn list<T: IntoBytes + Immutable>(&mut self, items: &[T]) {
        self.head::<T>(items.len());
        self.items(items);
    }
}

impl<'a> Load<'a> {
    /// Reads the versions, which say how what follows is laid out.
    pub(crate) fn begin(fill: &'a mut dyn FnMut(&mut [u8]) -> bool) -> Result<Self, SnapshotError> {
        let mut load = Self { fill, layout: LAYOUT };
        // The core's own version says which rules made this state, and nothing about how it is laid out.
        let [found, _core_version]: [u32; 2] = load.item()?;
        if found != LAYOUT && found != OLDER {
            return Err(SnapshotError::Layout { found });
        }
        load.layout = found;
        Ok(load)
    }

    /// Whether core version 3 has written it.
    pub(crate) fn is_older(&self) -> bool {
        self.layout == OLDER
    }

    pub(crate) fn item<T: TryFromBytes + IntoBytes + KnownLayout + Immutable>(&mut self) -> Result<T, SnapshotError> {
        let mut bytes = vec![0; size_of::<T>()];
        self.bytes(&mut bytes)?;
        T::try_read_from_bytes(&bytes).map_err(|_| SnapshotError::Damaged)
    }

    /// How many items of a list follow.
    pub(crate) fn head<T>(&mut self) -> Result<List, SnapshotError> {
        let head: ListHead = self.item()?;
        let item_bytes = head.item_bytes as usize;
        let is_older = self.is_older() && (1..size_of::<T>()).contains(&item_bytes);
        match item_bytes == size_of::<T>() || is_older {
            true => Ok(List { items: head.items, item_bytes }),
            false => Err(SnapshotError::Damaged),
        }
    }

    /// So many items, in pieces that fit a cache: a number that is wrong ends with the bytes, and not with the memory.
    pub(crate) fn items<T>(
        &mut self,
        List { items, item_bytes }: List,
        at_once: usize,
        mut take: impl FnMut(&[T]),
    ) -> Result<(), SnapshotError>
    where
        T: TryFromBytes + KnownLayout + Immutable,
    {
        let most = items.min(at_once as u64) as usize;
        // A cache line more, to begin where an item may lie.
        let mut bytes = vec![0; most * size_of::<T>() + 64];
        let from = bytes.as_ptr().align_offset(align_of::<T>());
        let mut left = items;
        while left > 0 {
            let count = left.min(at_once as u64) as usize;
            let piece = &mut bytes[from..from + count * size_of::<T>()];
            match item_bytes == size_of::<T>() {
                true => self.bytes(piece)?,
                false => {
                    piece.fill(0);
                    piece.chunks_exact_mut(size_of::<T>()).try_for_each(|item| self.bytes(&mut item[..item_bytes]))?;
                }
            }
            take(<[T]>::try_ref_from_bytes(piece).map_err(|_| SnapshotError::Damaged)?);
            left -= count as u64;
        }
        Ok(())
    }

    pub(crate) fn list<T>(&mut self) -> Result<Vec<T>, SnapshotError>
    where
        T: TryFromBytes + KnownLayout + Immutable + Copy,
    {
        let (head, mut list) = (self.head::<T>()?, Vec::new());
        self.items(head, CHUNK, |piece| list.extend_from_slice(piece))?;
        Ok(list)
    }

    fn bytes(&mut self, piece: &mut [u8]) -> Result<(), SnapshotError> {
        if (self.fill)(piece) { Ok(()) } else { Err(SnapshotError::Short) }
    }
}

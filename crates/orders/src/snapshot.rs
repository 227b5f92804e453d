//! A core as bytes, and a core from bytes.
//!
//! ```text
//!   layout version 4 · core version 4      each in so many bytes
//!   state     keys, epoch, boot, counts, digest: one struct each
//!   lists     bytes of an item 4 · zero 4 · items 8 · the items    of each list, in the order of `save`
//! ```
//! Items are the structs that the core works with, so a snapshot is read at the speed of memory. Each list says how long
//! its items are. Structs grow at their end, and zero says nothing: an item of an older layout is read with zeros behind it,
//! and lists that it did not have are empty.
//! Whoever stores a snapshot sums it up: this module only refuses what no core has written.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::again::Again;
use crate::core::{Config, Core, Counts, Rate};
use crate::digest::Tally;
use crate::names::Names;
use crate::{CORE_VERSION, Digest};

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

/// Numbers of the core that are no lists.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct State {
    key: u64,
    last_request: u64,
    epoch: u64,
    boot_id: [u8; 16],
    ns_of_tick: u64,
    counts: Counts,
    digest: Digest,
}

/// An order that misses a venue sequence, and since when.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Gapped {
    slot: u32,
    reserved: u32,
    since: u64,
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

/// Numbers of the core that version 3 did not have.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MoreState {
    booted: u64,
    utc_ns: u64,
    has_unpriced: u64,
}

impl Core {
    /// Gives the core's bytes to `emit`, in pieces. What is applied after them gives the same state and outputs as it
    /// gives here.
    pub fn save(&self, emit: &mut dyn FnMut(&[u8])) {
        let mut save = Save(emit);
        save.item(&[LAYOUT, CORE_VERSION]);
        save.item(&State {
            key: self.config.key,
            last_request: self.last_request,
            epoch: self.epoch,
            boot_id: self.boot_id,
            ns_of_tick: self.rate.number(),
            counts: self.counts,
            digest: self.tally.digest(),
        });
        self.orders.save(&mut save);
        self.asks.save(&mut save);
        self.fills.save(&mut save);
        self.denied.save(&mut save);
        self.by_id.save(&mut save);
        self.by_client.save(&mut save);
        self.by_exec.save(&mut save);
        self.live.save(&mut save);
        self.desk.save(&mut save);
        self.routes.save(&mut save);
        self.positions.save(&mut save);
        let gapped = self.gapped.iter().map(|&(slot, since)| Gapped { slot, reserved: 0, since });
        save.list(&gapped.collect::<Vec<_>>());
        let (booted, utc_ns) = self.booted;
        save.list(&[MoreState { booted, utc_ns, has_unpriced: self.has_unpriced.into() }]);
        self.desk.save_more(&mut save);
        self.positions.save_more(&mut save);
        self.save_armed(&mut save);
        self.foreign.save(&mut save);
        self.names.save(&mut save);
        self.again.save(&mut save);
    }

    /// A core from the bytes that [`Self::save`] gave; `fill` fills a piece, or says that there are no more. It is laid
    /// out for `expected_orders` more, and keeps the key that it was saved with.
    pub fn load(expected_orders: usize, fill: &mut dyn FnMut(&mut [u8]) -> bool) -> Result<Self, SnapshotError> {
        let mut load = Load { fill, layout: LAYOUT };
        // The core's own version says which rules made this state, and nothing about how it is laid out.
        let [found, _core_version]: [u32; 2] = load.item()?;
        if found != LAYOUT && found != OLDER {
            return Err(SnapshotError::Layout { found });
        }
        load.layout = found;
        let state: State = load.item()?;
        let mut core = Self::new(Config { expected_orders, key: state.key });
        core.orders.load(&mut load)?;
        core.asks.load(&mut load)?;
        core.fills.load(&mut load)?;
        core.denied.load(&mut load)?;
        core.by_id.load(&mut load)?;
        core.by_client.load(&mut load)?;
        core.by_exec.load(&mut load)?;
        core.live.load(&mut load)?;
        core.desk.load(&mut load)?;
        core.routes.load(&mut load)?;
        core.positions.load(&mut load)?;
        core.gapped = load.list::<Gapped>()?.into_iter().map(|gap| (gap.slot, gap.since)).collect();
        (core.last_request, core.epoch, core.boot_id) = (state.last_request, state.epoch, state.boot_id);
        (core.rate, core.counts) = (Rate::saved(state.ns_of_tick), state.counts);
        core.tally = Tally::at(state.digest);
        if found != OLDER {
            let [more] = load.list::<MoreState>()?[..] else { return Err(SnapshotError::Damaged) };
            (core.booted, core.has_unpriced) = ((more.booted, more.utc_ns), more.has_unpriced != 0);
            core.desk.load_more(&mut load)?;
            core.positions.load_more(&mut load)?;
            core.load_armed(&mut load)?;
            core.foreign.load(&mut load)?;
            core.desk.has_rare |= core.positions.has_limits();
            core.names = Names::load(&mut load)?;
            core.again = Again::load(&mut load)?;
        } else {
            core.has_unpriced = true;
        }
        core.count_own();
        Ok(core)
    }
}

impl Save<'_> {
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

impl Load<'_> {
    pub(crate) fn item<T: TryFromBytes + IntoBytes + KnownLayout + Immutable>(&mut self) -> Result<T, SnapshotError> {
        let mut bytes = vec![0; size_of::<T>()];
        self.bytes(&mut bytes)?;
        T::try_read_from_bytes(&bytes).map_err(|_| SnapshotError::Damaged)
    }

    /// How many items of a list follow.
    pub(crate) fn head<T>(&mut self) -> Result<List, SnapshotError> {
        let head: ListHead = self.item()?;
        let item_bytes = head.item_bytes as usize;
        let is_older = self.layout == OLDER && (1..size_of::<T>()).contains(&item_bytes);
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

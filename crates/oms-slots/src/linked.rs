//! A list in pages whose items have a link each, in the same cache lines.

use crate::{Pages, SnapshotError, SnapshotReader, SnapshotWriter};
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// An item and its link, aligned to a cache line. A snapshot holds the item only.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Linked<T, L> {
    item: T,
    link: L,
}

impl<T, L> Linked<T, L> {
    /// Creates an item with its link.
    pub const fn new(item: T, link: L) -> Self {
        Self { item, link }
    }
}

/// A list in pages of `N` items with a link each, so that a push writes to adjacent memory.
///
/// ```
/// use tickpath_oms_slots::LinkedPages;
///
/// let mut orders: LinkedPages<u64, u32, 64> = LinkedPages::new(0, u32::MAX, 100);
/// let slot = orders.push(7);
/// *orders.link_mut(slot) = 3;
/// assert_eq!((orders.get(slot), orders.link(slot)), (&7, &3));
/// ```
pub struct LinkedPages<T, L, const N: usize> {
    pages: Pages<Linked<T, L>, N>,
    unlinked: L,
}

impl<T: Copy, L: Copy, const N: usize> LinkedPages<T, L, N> {
    /// Makes a list without pages, whose table of pages has room for the expected number of items; `empty` fills the
    /// rest of a page, and a new item has the link `unlinked`.
    pub fn new(empty: T, unlinked: L, expected: usize) -> Self {
        Self { pages: Pages::new(Linked::new(empty, unlinked), expected), unlinked }
    }

    /// Appends an item and returns its slot.
    #[inline]
    pub fn push(&mut self, item: T) -> u32 {
        self.pages.push(Linked::new(item, self.unlinked))
    }

    /// Returns the item in a slot, which must be below [`Self::len`].
    #[inline]
    pub fn get(&self, slot: u32) -> &T {
        &self.pages.get(slot).item
    }

    /// Returns the item in a slot, to change it.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.pages.get_mut(slot).item
    }

    /// Returns the link of the item in a slot.
    #[inline]
    pub fn link(&self, slot: u32) -> &L {
        &self.pages.get(slot).link
    }

    /// Returns the link of the item in a slot, to change it.
    #[inline]
    pub fn link_mut(&mut self, slot: u32) -> &mut L {
        &mut self.pages.get_mut(slot).link
    }

    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> u32 {
        self.pages.len()
    }

    /// Returns whether the list has no item.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Removes all items; their pages stay.
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    /// Appends the items to a snapshot, without their links.
    pub fn save(&self, save: &mut SnapshotWriter<'_>)
    where
        T: IntoBytes + Immutable,
    {
        self.pages.save_part(save, |linked| linked.item);
    }

    /// Replaces the list by the list at this place of a snapshot; no item is linked then.
    pub fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError>
    where
        T: TryFromBytes + KnownLayout + Immutable,
    {
        let unlinked = self.unlinked;
        self.pages.load_part(load, |item: &T| Linked::new(*item, unlinked))
    }

    /// Returns whether the list has no spare page.
    pub fn needs_page(&self) -> bool {
        self.pages.needs_page()
    }

    /// Takes a spare page of `N` items, built by [`empty_page`](crate::empty_page).
    pub fn add_page(&mut self, page: Box<[Linked<T, L>]>) {
        self.pages.add_page(page);
    }

    /// Reads the memory of the next item, so that its cache lines are loaded.
    pub fn prefetch_next(&self) {
        self.pages.prefetch_next();
    }
}

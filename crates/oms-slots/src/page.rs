//! Memory in pages of fixed size: growth costs the same at the first item and at the five millionth.

use std::hint::black_box;

use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

/// Max spare pages; further pages are freed.
const MAX_SPARE_PAGES: usize = 3;

/// A list in pages of `N` items. An item keeps its slot and its address while the list grows.
///
/// ```
/// use tickpath_oms_slots::{Pages, empty_page};
///
/// let mut prices: Pages<i64, 4096> = Pages::new(0, 10_000);
/// // Another thread can build the page: the list then grows without a pause.
/// prices.add_page(empty_page(0, 4096));
/// assert!(!prices.needs_page());
/// assert_eq!(prices.push(100), 0);
/// *prices.get_mut(0) += 1;
/// assert_eq!(prices.get(0), &101);
/// assert!(prices.needs_page());
/// ```
pub struct Pages<T, const N: usize> {
    pages: Vec<Box<[T]>>,
    spare: Vec<Box<[T]>>,
    len: u32,
    empty: T,
}

impl<T: Copy, const N: usize> Pages<T, N> {
    /// Creates a list without pages, whose table of pages has room for the expected number of items; `empty` fills the
    /// unused part of a page.
    pub fn new(empty: T, expected: usize) -> Self {
        Self { pages: Vec::with_capacity(expected / N + 1), spare: Vec::with_capacity(MAX_SPARE_PAGES), len: 0, empty }
    }

    /// Appends an item and returns its slot.
    #[inline]
    pub fn push(&mut self, item: T) -> u32 {
        let slot = self.len;
        if slot as usize / N == self.pages.len() {
            let empty = self.empty;
            self.pages.push(self.spare.pop().unwrap_or_else(|| empty_page(empty, N)));
        }
        self.len += 1;
        *self.get_mut(slot) = item;
        slot
    }

    /// Returns the item in a slot, which must be below [`Self::len`].
    #[inline]
    pub fn get(&self, slot: u32) -> &T {
        &self.pages[slot as usize / N][slot as usize % N]
    }

    /// Returns the item in a slot, to change it; the slot must be below [`Self::len`].
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.pages[slot as usize / N][slot as usize % N]
    }

    /// Appends the list to a snapshot.
    pub fn save(&self, save: &mut SnapshotWriter<'_>)
    where
        T: IntoBytes + Immutable,
    {
        save.write_list_header::<T>(self.len as usize);
        let mut left = self.len as usize;
        for page in &self.pages {
            save.write_items(&page[..left.min(N)]);
            left = left.saturating_sub(N);
        }
    }

    /// Appends the list to a snapshot, with only `part` of each item.
    pub fn save_part<U: IntoBytes + Immutable>(&self, save: &mut SnapshotWriter<'_>, part: impl Fn(&T) -> U) {
        save.write_list_header::<U>(self.len as usize);
        let mut left = self.len as usize;
        for page in &self.pages {
            let parts: Vec<U> = page[..left.min(N)].iter().map(&part).collect();
            save.write_items(&parts);
            left = left.saturating_sub(N);
        }
    }

    /// Replaces the list by the list at this position of a snapshot.
    pub fn load(&mut self, load: &mut SnapshotReader<'_>) -> Result<(), SnapshotError>
    where
        T: TryFromBytes + KnownLayout + Immutable,
    {
        self.load_part(load, |item| *item)
    }

    /// Replaces the list by a list that [`Self::save_part`] has saved; `item` makes an item from its part.
    pub fn load_part<U>(&mut self, load: &mut SnapshotReader<'_>, item: impl Fn(&U) -> T) -> Result<(), SnapshotError>
    where
        U: TryFromBytes + KnownLayout + Immutable,
    {
        let list = load.read_list_header::<U>()?;
        let len = u32::try_from(list.items).map_err(|_| SnapshotError::Damaged)?;
        (self.len, self.pages) = (0, Vec::with_capacity(self.pages.capacity().max(len as usize / N + 1)));
        let mut page = Vec::new();
        load.read_items(list, N, |piece: &[U]| {
            page.reserve_exact(N);
            page.extend(piece.iter().map(&item));
            page.resize(N, self.empty);
            self.pages.push(std::mem::take(&mut page).into_boxed_slice());
        })?;
        self.len = len;
        Ok(())
    }

    /// Returns the number of items, which is the slot of the next item.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the list has no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all items; their pages stay.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Reads the memory of the next item, if its page exists, so that its cache lines are loaded when the item is
    /// pushed.
    #[inline]
    pub fn prefetch_next(&self) {
        /// Max cache lines of an item of one and a half lines.
        const LINES: usize = 3;
        let (page, index) = (self.len as usize / N, self.len as usize % N);
        let items = self.pages.get(page).or(self.spare.last()).map(|page| &page[index..]);
        let Some(items) = items else { return };
        let step = (64 / size_of::<T>()).max(1);
        items.iter().step_by(step).take(LINES).for_each(|item| {
            black_box(*item);
        });
    }

    /// Returns whether the list has no spare page, so that it would have to build the next page itself.
    #[inline]
    pub fn needs_page(&self) -> bool {
        self.spare.is_empty()
    }

    /// Takes a spare page of `N` items, built by [`empty_page`].
    pub fn add_page(&mut self, page: Box<[T]>) {
        if self.spare.len() < MAX_SPARE_PAGES {
            self.spare.push(page);
        }
    }
}

/// Builds a page of empty items for [`Pages::add_page`]. Where the bits of an empty item are not all zero, building the
/// page writes to all of its memory.
pub fn empty_page<T: Copy>(empty: T, count: usize) -> Box<[T]> {
    vec![empty; count].into_boxed_slice()
}

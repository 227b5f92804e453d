//! Memory in pages of fixed size: growth costs the same at the first order and at the five millionth.

use std::hint::black_box;

use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::snapshot::{Load, Save, SnapshotError};

/// Pages held ready; more than that is given back to the allocator.
const SPARE: usize = 3;

/// A list in pages of `N`. Its items have slots that never move.
pub(crate) struct Pages<T, const N: usize> {
    pages: Vec<Box<[T]>>,
    spare: Vec<Box<[T]>>,
    len: u32,
    empty: T,
}

impl<T: Copy, const N: usize> Pages<T, N> {
    /// A list without pages; the table of pages has room for the expected number of items.
    pub(crate) fn new(empty: T, expected: usize) -> Self {
        Self { pages: Vec::with_capacity(expected / N + 1), spare: Vec::with_capacity(SPARE), len: 0, empty }
    }

    /// Appends an item and tells its slot.
    pub(crate) fn push(&mut self, item: T) -> u32 {
        let slot = self.len;
        if slot as usize / N == self.pages.len() {
            let empty = self.empty;
            self.pages.push(self.spare.pop().unwrap_or_else(|| blank(empty, N)));
        }
        self.len += 1;
        *self.get_mut(slot) = item;
        slot
    }

    pub(crate) fn get(&self, slot: u32) -> &T {
        &self.pages[slot as usize / N][slot as usize % N]
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.pages[slot as usize / N][slot as usize % N]
    }

    pub(crate) fn save(&self, save: &mut Save<'_>)
    where
        T: IntoBytes + Immutable,
    {
        save.head::<T>(self.len as usize);
        let mut left = self.len as usize;
        for page in &self.pages {
            save.items(&page[..left.min(N)]);
            left = left.saturating_sub(N);
        }
    }

    /// Takes the place of what is here.
    pub(crate) fn load(&mut self, load: &mut Load<'_>) -> Result<(), SnapshotError>
    where
        T: TryFromBytes + KnownLayout + Immutable,
    {
        let list = load.head::<T>()?;
        let len = u32::try_from(list.items).map_err(|_| SnapshotError::Damaged)?;
        (self.len, self.pages) = (0, Vec::with_capacity(self.pages.capacity().max(len as usize / N + 1)));
        let mut page = Vec::new();
        load.items(list, N, |piece| {
            page.reserve_exact(N);
            page.extend_from_slice(piece);
            page.resize(N, self.empty);
            self.pages.push(std::mem::take(&mut page).into_boxed_slice());
        })?;
        self.len = len;
        Ok(())
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Forgets all items; their pages stay.
    pub(crate) fn empty(&mut self) {
        self.len = 0;
    }

    /// Looks at where the next item will lie, if its page is there.
    pub(crate) fn look_ahead(&self) {
        /// An item of one and a half lines may lie in three.
        const LINES: usize = 3;
        let (page, place) = (self.len as usize / N, self.len as usize % N);
        let items = self.pages.get(page).or(self.spare.last()).map(|page| &page[place..]);
        let Some(items) = items else { return };
        let step = (64 / size_of::<T>()).max(1);
        items.iter().step_by(step).take(LINES).for_each(|item| {
            black_box(*item);
        });
    }

    /// Whether the next page would have to be built in place.
    pub(crate) fn wants_page(&self) -> bool {
        self.spare.is_empty()
    }

    /// Holds a page ready.
    pub(crate) fn give_page(&mut self, page: Box<[T]>) {
        if self.spare.len() < SPARE {
            self.spare.push(page);
        }
    }
}

/// An empty item has bits that are not zero, so building a page writes to all of it.
pub(crate) fn blank<T: Copy>(empty: T, count: usize) -> Box<[T]> {
    vec![empty; count].into_boxed_slice()
}

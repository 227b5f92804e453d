//! Containers of items that have slots, and the byte form of a snapshot of them. The crate knows nothing of orders.
//!
//! ```text
//!   id ──tag──> Index ──slot──┬──> Pages     the item, at an address that never changes
//!                             └──> BitSet    whether the slot is in a set
//!
//!   Index, Pages, BitSet ──SnapshotWriter──> bytes of a snapshot ──SnapshotReader──> Index, Pages, BitSet
//! ```
//!
//! A slot is the number of an item, from 0, in the order in which the items were added.
//!
//! | file          | contents                                                                |
//! |---------------|-------------------------------------------------------------------------|
//! | `page.rs`     | [`Pages`]: a list in pages of fixed size                                |
//! | `index.rs`    | [`Index`]: linear hashing, from the tags of ids to slots                |
//! | `linked.rs`   | [`LinkedPages`]: a list in pages whose items have a link each           |
//! | `bit_set.rs`  | [`BitSet`]: a set of slots, one bit each                                |
//! | `queue.rs`    | [`SlotQueue`]: items in their order of leaving, found by slot           |
//! | `snapshot.rs` | [`SnapshotWriter`] and [`SnapshotReader`]: numbers and lists as the bytes of a snapshot |
//!
//! Invariant: a list grows by a page and moves no item, an index grows by splitting one bucket: an insert costs the
//! same at the first item and at the five millionth.
//!
//! ```
//! use tickpath_oms_slots::{BitSet, Index, Pages, SnapshotReader, SnapshotWriter, tag};
//!
//! // Prices by order id, and which of the orders are open.
//! let mut orders: Pages<[u64; 2], 64> = Pages::new([0; 2], 1_000);
//! let (mut by_id, mut open) = (Index::default(), BitSet::default());
//! for order in [[70, 101], [71, 99], [72, 100]] {
//!     let slot = orders.push(order);
//!     by_id.insert(tag(0, 0, order[0]), slot);
//!     open.set(slot, order[0] != 71);
//! }
//! let slot = by_id.find(tag(0, 0, 72), |slot| orders.get(slot)[0] == 72).expect("order 72 was added");
//! assert_eq!(orders.get(slot), &[72, 100]);
//! assert_eq!(open.next(1), Some(slot));
//!
//! let mut bytes = Vec::new();
//! let mut emit = |piece: &[u8]| bytes.extend_from_slice(piece);
//! let mut writer = SnapshotWriter::begin(&mut emit, 1);
//! orders.save(&mut writer);
//! open.save(&mut writer);
//!
//! let mut left = bytes.as_slice();
//! let mut fill = |piece: &mut [u8]| match left.split_at_checked(piece.len()) {
//!     Some((taken, rest)) => {
//!         piece.copy_from_slice(taken);
//!         left = rest;
//!         true
//!     }
//!     None => false,
//! };
//! let mut reader = SnapshotReader::begin(&mut fill)?;
//! let mut loaded: Pages<[u64; 2], 64> = Pages::new([0; 2], 0);
//! loaded.load(&mut reader)?;
//! assert_eq!(loaded.get(slot), orders.get(slot));
//! # Ok::<(), tickpath_oms_slots::SnapshotError>(())
//! ```

mod bit_set;
mod index;
mod linked;
mod page;
mod queue;
mod snapshot;

pub use self::bit_set::BitSet;
pub use self::index::{Index, IndexPage, tag};
pub use self::linked::{Linked, LinkedPages};
pub use self::page::{Pages, empty_page};
pub use self::queue::{QueueItem, SlotQueue};
pub use self::snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

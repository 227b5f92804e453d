//! The queue against a list that is scanned.

use proptest::prelude::*;
use tickpath_oms_slots::{QueueItem, SlotQueue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    slot: u32,
    id: u64,
    is_odd: bool,
}

impl QueueItem for Item {
    fn slot(&self) -> u32 {
        self.slot
    }
}

proptest! {
    #[test]
    fn a_slot_queue_equals_a_plain_list(
        steps in prop::collection::vec((0_u8..5, 0_u32..6, 0_u64..50, any::<bool>()), 0..400)
    ) {
        let (mut queue, mut model) = (SlotQueue::default(), Vec::<Item>::new());
        for (step, slot, id, is_odd) in steps {
            let new = Item { slot, id, is_odd };
            match step {
                0 | 1 => {
                    queue.push(new);
                    model.push(new);
                }
                2 => {
                    queue.insert(new, |other| other.id > id);
                    let place = model.iter().position(|other| other.slot == slot && other.id > id);
                    model.insert(place.unwrap_or(model.len()), new);
                }
                3 => {
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(queue.pop(), expected);
                }
                _ => {
                    queue.remove(slot, |item| item.is_odd);
                    model.retain(|item| item.slot != slot || !item.is_odd);
                }
            }
            prop_assert_eq!(queue.len(), model.len());
            prop_assert_eq!(queue.is_empty(), model.is_empty());
            prop_assert_eq!(queue.front(), model.first());
            prop_assert!(queue.iter().eq(&model));
            prop_assert!(queue.of_slot(slot).eq(model.iter().filter(|item| item.slot == slot)));
        }
        prop_assert!(queue.drain().eq(model));
    }
}

//! Fields that a message or a repeating group consists of.

use super::field::FieldType;
use super::tag_table::TagTable;
use crate::tags::Tag;

/// Part of a message, in the order of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Routing, sequence number and times.
    Header,
    /// Contents.
    Body,
    /// Signature and checksum.
    Trailer,
}

/// Number of a repeating group in its dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId(pub(crate) u32);

/// A field of a message or of a repeating group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Tag; that of the count for a repeating group.
    pub tag: Tag,
    /// Type of the values.
    pub kind: FieldType,
    /// Part of the message.
    pub section: Section,
    /// The message, or each instance of the group, needs the field.
    pub is_required: bool,
    /// Repeating group whose instances the field counts.
    pub group: Option<GroupId>,
    /// The field is enumerated: its definition has the values.
    pub(crate) is_enumerated: bool,
    /// Index of the field's definition.
    pub(crate) field: u32,
}

/// The members of a message or a group, found by their tags. Sets of members are bits, a word for 64 members.
#[derive(Debug, Clone)]
pub(crate) struct MemberTable {
    tags: TagTable,
    members: Box<[Member]>,
    /// Set of the required members.
    required: Box<[u64]>,
}

impl MemberTable {
    /// Creates the table of members with different tags.
    pub fn new(members: Vec<Member>) -> Self {
        let tags: Vec<Tag> = members.iter().map(|member| member.tag).collect();
        let mut required = vec![0_u64; members.len().div_ceil(64)];
        for (position, _) in members.iter().enumerate().filter(|(_, member)| member.is_required) {
            set_insert(&mut required, position);
        }
        Self { tags: TagTable::new(&tags), members: members.into(), required: required.into() }
    }

    /// Returns the members, in the dictionary's order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the member with this tag, and its position.
    #[inline]
    pub fn find(&self, tag: Tag) -> Option<(usize, &Member)> {
        let position = self.tags.position(tag)?;
        Some((position, self.members.get(position)?))
    }

    /// Returns the words of a set of the members.
    #[inline]
    pub fn words(&self) -> usize {
        self.required.len()
    }

    /// Returns the required member with the lowest tag in the first part of the message that lacks one.
    #[inline]
    pub fn missing(&self, present: &[u64]) -> Option<&Member> {
        if self.required.iter().zip(present).all(|(required, present)| required & !present == 0) {
            return None;
        }
        let absent = |(position, member): &(usize, &Member)| member.is_required && !set_contains(present, *position);
        let absent = self.members.iter().enumerate().filter(absent).map(|(_, member)| member);
        absent.min_by_key(|member| (member.section == Section::Body, member.section, member.tag))
    }
}

/// Adds a member to a set, and returns whether it is new there.
#[inline]
pub(crate) fn set_insert(set: &mut [u64], position: usize) -> bool {
    let (word, bit) = (&mut set[position / 64], 1_u64 << (position % 64));
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

/// Returns whether a set contains a member.
#[inline]
pub(crate) fn set_contains(set: &[u64], position: usize) -> bool {
    set[position / 64] & (1_u64 << (position % 64)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(tag: Tag, section: Section, is_required: bool) -> Member {
        Member { tag, kind: FieldType::String, section, is_required, group: None, is_enumerated: false, field: 0 }
    }

    #[test]
    fn the_missing_member_is_the_lowest_one_of_the_frame_or_else_of_the_body() {
        let mut members = vec![member(8, Section::Header, true), member(10, Section::Trailer, true)];
        members.extend((100..200).rev().map(|tag| member(tag, Section::Body, tag % 2 == 1)));
        let table = MemberTable::new(members);
        assert_eq!(table.words(), 2);
        let mut present = vec![0_u64; 2];
        for expected in [8, 10, 101, 103] {
            let missing = table.missing(&present).expect("a member is missing").tag;
            assert_eq!(missing, expected);
            let (position, _) = table.find(missing).expect("it is a member");
            assert!(set_insert(&mut present, position) && !set_insert(&mut present, position));
        }
        for tag in (101..200).step_by(2) {
            set_insert(&mut present, table.find(tag).expect("it is a member").0);
        }
        assert_eq!(table.missing(&present), None);
    }
}

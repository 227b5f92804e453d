//! The walk over a message's fields that finds its faults.
//!
//! A message may have several faults, and only the fault with the lowest rank is reported. Ranks follow the order of
//! other engines' checks: structure of the message; required fields of header, trailer and body; required fields of
//! group instances; then the fields one by one, header first, trailer next, and in each part from the lowest tag up.

use super::format::has_format;
use super::rejection::{Rejection, SessionRejectReason};
use super::rules::{FIRST_USER_DEFINED_TAG, ValidationRules};
use crate::dictionary::{
    Dictionary, GroupId, Member, MemberTable, MessageDefinition, Section, set_contains, set_insert,
};
use crate::field_table::{Field, Message};
use crate::tags::Tag;
use crate::values::parse_unsigned;

/// Place of a fault in the order of reports; the lowest one is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Fields are out of order, from this index on.
    Structure(usize),
    /// A required field is missing.
    Required,
    /// A required field of a group instance is missing: the rank of the group's outermost count.
    RequiredInGroup(FieldRank),
    /// A field is wrong.
    Field(FieldRank, Step),
}

/// Place of a field outside of groups among the fields that are checked one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FieldRank {
    is_body: bool,
    section: Section,
    tag: Tag,
}

/// Order of the checks of a field outside of groups, and of the group that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The field itself.
    Own,
    /// Instances of its group.
    Count,
    /// Members of its group.
    Members,
}

impl FieldRank {
    fn new(section: Section, tag: Tag) -> Self {
        Self { is_body: section == Section::Body, section, tag }
    }
}

/// A walk over one message.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    dictionary: &'a Dictionary,
    definition: &'a MessageDefinition,
    rules: ValidationRules,
    message: Message<'a>,
    /// The fault to report so far.
    fault: Option<(Rank, Rejection)>,
}

impl<'a> Walk<'a> {
    pub fn new(
        dictionary: &'a Dictionary,
        definition: &'a MessageDefinition,
        rules: ValidationRules,
        message: Message<'a>,
    ) -> Self {
        Self { dictionary, definition, rules, message, fault: None }
    }

    /// Checks the message. `sets` has the dictionary's number of words.
    #[inline]
    pub fn check(mut self, sets: &mut [u64]) -> Result<(), Rejection> {
        let table = self.definition.table();
        let (present, group_sets) = sets.split_at_mut(table.words());
        present.fill(0);
        let mut section = Section::Header;
        let mut at = 0;
        while let Some(field) = self.message.fields().get(at) {
            let index = at;
            at += 1;
            let Some((position, member)) = table.find(field.tag) else {
                if !self.allows_other(field.tag) {
                    self.enter(Section::Body, &mut section, index, field.tag);
                }
                self.check_other_field(field);
                continue;
            };
            if member.section != section {
                self.enter(member.section, &mut section, index, field.tag);
            }
            if set_insert(present, position) {
                self.check_member(member, field, Step::Own, member.section, field.tag);
            } else {
                let rank = Rank::Field(FieldRank::new(member.section, field.tag), Step::Own);
                self.note(rank, SessionRejectReason::TagRepeated, field.tag);
            }
            if let Some(group) = member.group {
                let top = FieldRank::new(member.section, field.tag);
                at = self.walk_group(group, field, at, top, group_sets);
            }
        }
        if let Some(member) = table.missing(present) {
            self.note(Rank::Required, SessionRejectReason::RequiredTagMissing, member.tag);
        }
        self.fault.map_or(Ok(()), |(_, rejection)| Err(rejection))
    }

    /// Enters another part of the message, which may only be a later one.
    #[inline]
    fn enter(&mut self, next: Section, section: &mut Section, index: usize, tag: Tag) {
        if next > *section {
            *section = next;
        } else if next < *section && self.rules.field_order {
            self.note(Rank::Structure(index), SessionRejectReason::TagOutOfOrder, tag);
        }
    }

    /// Returns whether the rules allow a tag that the message does not define.
    fn allows_other(&self, tag: Tag) -> bool {
        if tag >= FIRST_USER_DEFINED_TAG { !self.rules.user_defined } else { !self.rules.undefined_tags }
    }

    /// Checks a field that the message does not define.
    fn check_other_field(&mut self, field: &Field) {
        let definition = self.dictionary.field_in(self.definition.space(), field.tag);
        let value = self.message.value(field);
        let wrong_value = match definition {
            _ if value.is_empty() => self.rules.values.then_some(SessionRejectReason::TagWithoutValue),
            Some(known) if !has_format(known.kind(), value) => Some(SessionRejectReason::IncorrectDataFormat),
            Some(known) if self.rules.allowed_values && !known.allows(value) => {
                Some(SessionRejectReason::ValueIncorrect)
            }
            _ => None,
        };
        let wrong_tag = match definition {
            _ if self.allows_other(field.tag) => None,
            Some(_) => Some(SessionRejectReason::TagNotDefinedForMessage),
            None => Some(SessionRejectReason::InvalidTagNumber),
        };
        if let Some(reason) = wrong_value.or(wrong_tag) {
            self.note(Rank::Field(FieldRank::new(Section::Body, field.tag), Step::Own), reason, field.tag);
        }
    }

    /// Checks the value of a field. `section` and `top` are those of the outermost count if the field is in a group.
    #[inline]
    fn check_member(&mut self, member: &Member, field: &Field, step: Step, section: Section, top: Tag) {
        let value = self.message.value(field);
        let reason = if value.is_empty() {
            if !self.rules.values {
                return;
            }
            SessionRejectReason::TagWithoutValue
        } else if !has_format(member.kind, value) {
            SessionRejectReason::IncorrectDataFormat
        } else if member.is_enumerated && self.rules.allowed_values && !self.dictionary.definition(member).allows(value)
        {
            SessionRejectReason::ValueIncorrect
        } else {
            return;
        };
        self.note(Rank::Field(FieldRank::new(section, top), step), reason, field.tag);
    }

    /// Walks over the instances of a group whose first field has the index `at`, and returns the index behind them.
    ///
    /// The recursion is as deep as the dictionary's groups are.
    fn walk_group(&mut self, group: GroupId, count: &Field, mut at: usize, top: FieldRank, sets: &mut [u64]) -> usize {
        let dictionary = self.dictionary;
        let table = dictionary.group(group).table();
        let (present, inner_sets) = sets.split_at_mut(table.words());
        let (mut instances, mut last) = (0_u64, 0);
        while let Some(field) = self.message.fields().get(at) {
            let Some((position, member)) = table.find(field.tag) else {
                if !self.is_unknown_but_allowed(field.tag) {
                    break;
                }
                at += 1;
                self.check_other_field(field);
                continue;
            };
            let is_strict = self.rules.group_order;
            let is_repeated = instances > 0 && set_contains(present, position);
            let is_next = instances == 0 || position == 0 || (is_repeated && !is_strict);
            if is_strict && position != 0 && (instances == 0 || position <= last) {
                self.note(Rank::Structure(at), SessionRejectReason::GroupOutOfOrder, field.tag);
            }
            if is_next {
                self.check_instance(table, present, instances, top);
                present.fill(0);
                instances += 1;
            }
            set_insert(present, position);
            last = position;
            at += 1;
            self.check_member(member, field, Step::Members, top.section, top.tag);
            if let Some(nested) = member.group {
                at = self.walk_group(nested, field, at, top, inner_sets);
            }
        }
        self.check_instance(table, present, instances, top);
        if parse_unsigned(self.message.value(count)) != Some(instances) {
            // The own tag of a nested count ranks with the members of the outermost group.
            let step = if count.tag == top.tag { Step::Count } else { Step::Members };
            self.note(Rank::Field(top, step), SessionRejectReason::IncorrectNumInGroup, count.tag);
        }
        at
    }

    /// Returns whether a tag is allowed although the dictionary does not define it at all: such a field does not end a
    /// group.
    fn is_unknown_but_allowed(&self, tag: Tag) -> bool {
        self.allows_other(tag) && self.dictionary.field_in(self.definition.space(), tag).is_none()
    }

    /// Checks that the instance of a group that ends here, if there is one, has the required fields.
    #[inline]
    fn check_instance(&mut self, table: &MemberTable, present: &[u64], instances: u64, top: FieldRank) {
        if instances == 0 {
            return;
        }
        if let Some(member) = table.missing(present) {
            self.note(Rank::RequiredInGroup(top), SessionRejectReason::RequiredTagMissing, member.tag);
        }
    }

    /// Keeps a fault if it ranks before the known one.
    #[cold]
    fn note(&mut self, rank: Rank, reason: SessionRejectReason, tag: Tag) {
        if self.fault.is_none_or(|(known, _)| rank < known) {
            self.fault = Some((rank, Rejection::new(reason, Some(tag))));
        }
    }
}

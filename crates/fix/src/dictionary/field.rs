//! Fields of a dictionary: names, types and allowed values.

use crate::tags::{self, Tag};

/// Value of an enumeration that allows every other value too.
const ANY_VALUE: &str = "__ANY__";

/// Type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// Text.
    String,
    /// One character.
    Char,
    /// `Y` or `N`.
    Boolean,
    /// Whole number.
    Int,
    /// Length in bytes of a data field.
    Length,
    /// Count of a repeating group's instances.
    NumInGroup,
    /// Sequence number.
    SeqNum,
    /// Day of a month, 1 to 31.
    DayOfMonth,
    /// Decimal number.
    Float,
    /// Price.
    Price,
    /// Difference of two prices.
    PriceOffset,
    /// Amount of money.
    Amt,
    /// Quantity.
    Qty,
    /// Share: 0.05 is 5 %.
    Percentage,
    /// Code of a currency.
    Currency,
    /// Code of a country.
    Country,
    /// Code of a market.
    Exchange,
    /// Code of a language.
    Language,
    /// Characters, separated by spaces.
    MultipleCharValue,
    /// Texts, separated by spaces.
    MultipleStringValue,
    /// Month of a year, with an optional day or week.
    MonthYear,
    /// Date at the market.
    LocalMktDate,
    /// Date in UTC.
    UtcDateOnly,
    /// Time of day in UTC.
    UtcTimeOnly,
    /// Date and time in UTC.
    UtcTimestamp,
    /// Time of day with a zone.
    TzTimeOnly,
    /// Date and time with a zone.
    TzTimestamp,
    /// Bytes, the separator included.
    Data,
    /// XML, the separator included.
    XmlData,
}

/// Names of the types in dictionaries, old and new ones.
const XML_NAMES: &[(&str, FieldType)] = &[
    ("AMT", FieldType::Amt),
    ("BOOLEAN", FieldType::Boolean),
    ("CHAR", FieldType::Char),
    ("COUNTRY", FieldType::Country),
    ("CURRENCY", FieldType::Currency),
    ("DATA", FieldType::Data),
    ("DATE", FieldType::LocalMktDate),
    ("DAYOFMONTH", FieldType::DayOfMonth),
    ("EXCHANGE", FieldType::Exchange),
    ("FLOAT", FieldType::Float),
    ("INT", FieldType::Int),
    ("LANGUAGE", FieldType::Language),
    ("LENGTH", FieldType::Length),
    ("LOCALMKTDATE", FieldType::LocalMktDate),
    ("LOCALMKTTIME", FieldType::String),
    ("MONTHYEAR", FieldType::MonthYear),
    ("MULTIPLECHARVALUE", FieldType::MultipleCharValue),
    ("MULTIPLESTRINGVALUE", FieldType::MultipleStringValue),
    ("MULTIPLEVALUESTRING", FieldType::MultipleStringValue),
    ("NUMINGROUP", FieldType::NumInGroup),
    ("PERCENTAGE", FieldType::Percentage),
    ("PRICE", FieldType::Price),
    ("PRICEOFFSET", FieldType::PriceOffset),
    ("QTY", FieldType::Qty),
    ("QUANTITY", FieldType::Qty),
    ("SEQNUM", FieldType::SeqNum),
    ("STRING", FieldType::String),
    ("TAGNUM", FieldType::Int),
    ("TENOR", FieldType::String),
    ("TIME", FieldType::UtcTimestamp),
    ("TZTIMEONLY", FieldType::TzTimeOnly),
    ("TZTIMESTAMP", FieldType::TzTimestamp),
    ("UTCDATE", FieldType::UtcDateOnly),
    ("UTCDATEONLY", FieldType::UtcDateOnly),
    ("UTCTIMEONLY", FieldType::UtcTimeOnly),
    ("UTCTIMESTAMP", FieldType::UtcTimestamp),
    ("XID", FieldType::String),
    ("XIDREF", FieldType::String),
    ("XMLDATA", FieldType::XmlData),
];

impl FieldType {
    /// Returns the type that a dictionary calls by this name, in capitals or not.
    pub(crate) fn named(name: &str) -> Option<Self> {
        XML_NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }

    /// Returns whether a value of this type is a list, separated by spaces.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::MultipleCharValue | Self::MultipleStringValue)
    }

    /// Returns whether a value may contain the separator, so that a field in front of it has its length.
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::XmlData)
    }
}

/// A value of an enumerated field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldValue {
    /// Value as in a message.
    pub value: String,
    /// Name of the value; empty if the dictionary has none.
    pub description: String,
}

/// Definition of a field.
#[derive(Debug, Clone)]
pub struct FieldDefinition {
    tag: Tag,
    name: String,
    kind: FieldType,
    values: Vec<FieldValue>,
    allowed: AllowedValues,
}

impl FieldDefinition {
    pub(crate) fn new(tag: Tag, name: &str, kind: FieldType, values: Vec<FieldValue>) -> Self {
        // The dictionary's messages are the message types, custom ones included.
        let is_open = tag == tags::MSG_TYPE || values.is_empty() || values.iter().any(|one| one.value == ANY_VALUE);
        let allowed = if is_open { AllowedValues::default() } else { AllowedValues::new(&values) };
        Self { tag, name: name.to_owned(), kind, values, allowed }
    }

    /// Returns the tag.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the values.
    pub fn kind(&self) -> FieldType {
        self.kind
    }

    /// Returns the values of an enumerated field; none for any other field.
    pub fn values(&self) -> &[FieldValue] {
        &self.values
    }

    /// Returns whether only the values of the dictionary are allowed.
    pub fn is_enumerated(&self) -> bool {
        !self.allowed.is_open()
    }

    /// Returns whether a value, or each value of a list, is one of the dictionary's.
    #[inline]
    pub fn allows(&self, value: &[u8]) -> bool {
        if self.allowed.is_open() {
            return true;
        }
        if self.kind.is_list() {
            return value.split(|byte| *byte == b' ').all(|one| self.allowed.contains(one));
        }
        self.allowed.contains(value)
    }
}

/// Values of an enumeration. None of them stands for any value.
#[derive(Debug, Clone, Default)]
struct AllowedValues {
    /// A bit for each value of one ASCII character.
    characters: u128,
    /// All other values, sorted.
    texts: Box<[Box<[u8]>]>,
}

impl AllowedValues {
    fn new(values: &[FieldValue]) -> Self {
        let mut characters = 0_u128;
        let mut texts = Vec::new();
        for value in values {
            match value.value.as_bytes() {
                [character] => characters |= 1_u128 << character,
                text => texts.push(Box::from(text)),
            }
        }
        texts.sort_unstable();
        Self { characters, texts: texts.into() }
    }

    fn is_open(&self) -> bool {
        self.characters == 0 && self.texts.is_empty()
    }

    #[inline]
    fn contains(&self, value: &[u8]) -> bool {
        match value {
            [character] => character.is_ascii() && (self.characters >> character) & 1 == 1,
            text => self.texts.binary_search_by(|known| (**known).cmp(text)).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(tag: Tag, kind: FieldType, values: &[&str]) -> FieldDefinition {
        let value = |value: &&str| FieldValue { value: (*value).to_owned(), description: String::new() };
        FieldDefinition::new(tag, "Field", kind, values.iter().map(value).collect())
    }

    fn check(field: &FieldDefinition, allowed: &[&str], others: &[&str]) {
        for (values, expected) in [(allowed, true), (others, false)] {
            for value in values {
                assert_eq!(field.allows(value.as_bytes()), expected, "'{value}' in tag {}", field.tag());
            }
        }
    }

    #[test]
    fn only_values_of_an_enumeration_are_allowed() {
        check(&field(54, FieldType::Char, &["1", "2", "B"]), &["1", "B"], &["3", "12", "", "\u{e9}"]);
        check(&field(167, FieldType::String, &["CS", "FUT", "?"]), &["CS", "FUT", "?"], &["BOO", "C", "CSX", ""]);
    }

    #[test]
    fn each_value_of_a_list_is_checked() {
        check(&field(18, FieldType::MultipleCharValue, &["1", "G"]), &["1", "G 1"], &["1 2", "1  G", "1 ", ""]);
    }

    #[test]
    fn open_fields_allow_any_value() {
        let open = [field(58, FieldType::String, &[]), field(tags::MSG_TYPE, FieldType::String, &["0"])];
        let marked = field(9_000, FieldType::String, &["1", ANY_VALUE]);
        for field in open.iter().chain([&marked]) {
            check(field, &["U1", ""], &[]);
            assert!(!field.is_enumerated());
        }
    }
}

//! Pairs of a length field and the data field behind it.

use crate::tags::Tag;

/// Pairs of FIX 4.0 to 5.0 SP2: the tag of the length, and the tag of the data.
const STANDARD: [(Tag, Tag); 24] = [
    (90, 91),
    (93, 89),
    (95, 96),
    (212, 213),
    (348, 349),
    (350, 351),
    (352, 353),
    (354, 355),
    (356, 357),
    (358, 359),
    (360, 361),
    (362, 363),
    (364, 365),
    (445, 446),
    (618, 619),
    (621, 622),
    (1184, 1185),
    (1277, 1278),
    (1280, 1281),
    (1282, 1283),
    (1397, 1398),
    (1401, 1402),
    (1403, 1404),
    (1468, 1469),
];

/// Words of the filter.
const FILTER_WORDS: usize = 64;

/// The data fields, by the tags of their length fields. A data field may contain delimiters, and is read by its length.
#[derive(Debug, Clone)]
pub struct DataTags {
    /// Pairs of length and data, by length.
    pairs: Vec<(Tag, Tag)>,
    /// A bit for each length tag modulo the bits of the filter.
    filter: [u64; FILTER_WORDS],
}

impl Default for DataTags {
    fn default() -> Self {
        Self::standard()
    }
}

impl DataTags {
    /// Makes the pairs of the FIX versions from 4.0 to 5.0 SP2.
    pub fn standard() -> Self {
        let mut tags = Self { pairs: Vec::with_capacity(STANDARD.len()), filter: [0; FILTER_WORDS] };
        for (length, data) in STANDARD {
            tags.add(length, data);
        }
        tags
    }

    /// Adds a pair, or replaces the pair of that length.
    pub fn add(&mut self, length: Tag, data: Tag) {
        match self.pairs.binary_search_by_key(&length, |pair| pair.0) {
            Ok(place) => self.pairs[place].1 = data,
            Err(place) => self.pairs.insert(place, (length, data)),
        }
        let (word, bit) = place_in_filter(length);
        self.filter[word] |= 1 << bit;
    }

    /// Returns the tag of the data behind a length; `None` if the tag is no length.
    #[inline]
    pub fn data_of(&self, length: Tag) -> Option<Tag> {
        let (word, bit) = place_in_filter(length);
        if (self.filter[word] >> bit) & 1 == 0 {
            return None;
        }
        self.find(length)
    }

    /// Looks for a pair that the filter does not exclude.
    #[inline(never)]
    fn find(&self, length: Tag) -> Option<Tag> {
        let place = self.pairs.binary_search_by_key(&length, |pair| pair.0).ok()?;
        Some(self.pairs[place].1)
    }
}

/// Returns the word and the bit of a tag.
#[inline]
fn place_in_filter(tag: Tag) -> (usize, u32) {
    ((tag / u64::BITS) as usize % FILTER_WORDS, tag % u64::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_and_own_pairs_are_found() {
        let mut tags = DataTags::standard();
        for (length, data) in STANDARD {
            assert_eq!(tags.data_of(length), Some(data), "{length}");
        }
        // 95 + 4,096 has the same place in the filter as 95.
        assert_eq!([35, 96, 95 + 4_096, 100_095].map(|tag| tags.data_of(tag)), [None; 4]);
        tags.add(100_095, 100_096);
        tags.add(95, 5_096);
        assert_eq!([95, 96, 100_095].map(|tag| tags.data_of(tag)), [Some(5_096), None, Some(100_096)]);
    }
}

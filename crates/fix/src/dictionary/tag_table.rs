//! Positions of tags in a set of tags, without hashing: an array for a span of tags, a sorted list for the tags far
//! above it, as those of venues often are.

use crate::tags::Tag;

/// Tags from the lowest one on that the array covers.
const NEAR_SPAN: Tag = 4096;

/// Positions of tags.
#[derive(Debug, Clone)]
pub(crate) struct TagTable {
    /// Lowest tag.
    first: Tag,
    /// Position plus one of each tag from the lowest on; zero for a tag that is not in the set.
    near: Box<[u16]>,
    /// All other tags with their positions plus one, sorted by tag.
    far: Box<[(Tag, u16)]>,
}

impl TagTable {
    /// Creates the table of up to 65,534 different tags.
    pub fn new(tags: &[Tag]) -> Self {
        let first = tags.iter().copied().min().unwrap_or(0);
        let near = tags.iter().map(|tag| tag - first).filter(|offset| *offset < NEAR_SPAN);
        let mut near = vec![0; near.max().map_or(0, |last| last as usize + 1)];
        let mut far = Vec::new();
        for (entry, &tag) in (1..=u16::MAX).zip(tags) {
            match near.get_mut((tag - first) as usize) {
                Some(place) => *place = entry,
                None => far.push((tag, entry)),
            }
        }
        far.sort_unstable();
        Self { first, near: near.into(), far: far.into() }
    }

    /// Returns the position of a tag in the set.
    #[inline]
    pub fn position(&self, tag: Tag) -> Option<usize> {
        match self.near.get(tag.wrapping_sub(self.first) as usize) {
            Some(&entry) => usize::from(entry).checked_sub(1),
            None => self.far_position(tag),
        }
    }

    fn far_position(&self, tag: Tag) -> Option<usize> {
        let place = self.far.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
        usize::from(self.far[place].1).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tag_has_its_position_and_no_other_tag_has_one() {
        let tags = [8, 9, 35, 4_103, 4_104, 25_035, 100_010, 49, u32::MAX];
        let table = TagTable::new(&tags);
        for (position, &tag) in tags.iter().enumerate() {
            assert_eq!(table.position(tag), Some(position), "tag {tag}");
        }
        for tag in [0, 7, 10, 48, 50, 4_102, 4_105, 25_034, 100_011, u32::MAX - 1] {
            assert_eq!(table.position(tag), None, "tag {tag}");
        }
        assert_eq!(table.near.len(), 4_096);
        assert_eq!(TagTable::new(&[]).position(0), None);
    }
}

//! Depth of an XML text, found without recursion: the XML reader recurses once a level, and must not exhaust the stack.

/// Max depth of elements.
pub(crate) const MAX_XML_DEPTH: u32 = 64;

/// Returns the line, from 1, of the first element that is nested deeper than [`MAX_XML_DEPTH`].
pub(crate) fn too_deep_line(xml: &str) -> Option<u32> {
    let bytes = xml.as_bytes();
    let (mut depth, mut at) = (0_u32, 0);
    while let Some(begin) = find(bytes, at, b"<") {
        let markup = &bytes[begin..];
        at = if markup.starts_with(b"<!--") {
            end_of(bytes, begin + 4, b"-->")
        } else if markup.starts_with(b"<![CDATA[") {
            end_of(bytes, begin, b"]]>")
        } else if markup.starts_with(b"<!") || markup.starts_with(b"<?") {
            end_of(bytes, begin, b">")
        } else if markup.starts_with(b"</") {
            depth = depth.saturating_sub(1);
            begin + 2
        } else {
            let end = end_of_tag(bytes, begin);
            depth += u32::from(!bytes[begin..end].ends_with(b"/>"));
            if depth > MAX_XML_DEPTH {
                let lines = bytes[..begin].iter().filter(|byte| **byte == b'\n').count();
                return Some(u32::try_from(lines + 1).unwrap_or(u32::MAX));
            }
            end
        };
    }
    None
}

/// Returns the offset of a text at or behind an offset.
fn find(bytes: &[u8], from: usize, text: &[u8]) -> Option<usize> {
    let place = bytes.get(from..)?.windows(text.len()).position(|window| window == text)?;
    Some(from + place)
}

/// Returns the offset behind a text, or the length if the text does not follow.
fn end_of(bytes: &[u8], from: usize, text: &[u8]) -> usize {
    find(bytes, from, text).map_or(bytes.len(), |begin| begin + text.len())
}

/// Returns the offset behind a tag that begins here. A `>` between quotes does not end the tag.
fn end_of_tag(bytes: &[u8], begin: usize) -> usize {
    let mut quote = None;
    for (at, &byte) in bytes.iter().enumerate().skip(begin) {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_elements_count() {
        let flat = "<a><b x='/>'/>\n<!-- <c> --><![CDATA[<d>]]></a>\n".repeat(100);
        assert_eq!(too_deep_line(&flat), None);
        let deep = |levels| format!("<?xml version='1.0'?>\n{}", "<a x=\"/>\">\n<!--</a>-->".repeat(levels));
        assert_eq!(too_deep_line(&deep(64)), None);
        assert_eq!(too_deep_line(&deep(65)), Some(66));
    }

    #[test]
    fn unfinished_markup_ends_the_search() {
        for text in ["", "<", "<a", "<!--", "<![CDATA[", "<?", "</", "<a x='", "a < b"] {
            assert_eq!(too_deep_line(text), None, "'{text}'");
        }
    }
}

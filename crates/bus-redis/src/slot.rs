//! Slots of a cluster: each node has some of the 16,384 slots, and a checksum of a name gives its slot.

const SLOTS: u16 = 16_384;

/// Returns the slot of a name: that of the text in its first braces, if there is any, else that of the whole name.
pub(crate) fn slot(key: &str) -> u16 {
    let braced = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let tag = braced.filter(|tag| !tag.is_empty()).unwrap_or(key);
    checksum(tag.as_bytes()) % SLOTS
}

/// Computes the CRC-16 of the XMODEM variant.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, &byte| {
        let mixed = sum ^ u16::from(byte) << 8;
        (0..8).fold(mixed, |sum, _| if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_match_those_of_the_servers() {
        assert_eq!(checksum(b"123456789"), 0x31c3);
        for (key, expected) in [("123456789", 12_739), ("foo", 12_182), ("bar", 5061), ("", 0)] {
            assert_eq!(slot(key), expected, "{key}");
        }
    }

    #[test]
    fn names_with_the_same_braced_tag_share_a_slot() {
        for (key, tag) in [("{user1000}.following", "user1000"), ("foo{bar}{zap}", "bar"), ("foo{{bar}}zap", "{bar")] {
            assert_eq!(slot(key), slot(tag), "{key}");
        }
        for whole in ["foo{}{bar}", "foo}bar{", "foo{bar"] {
            assert_eq!(slot(whole), checksum(whole.as_bytes()) % SLOTS, "{whole}");
        }
    }
}

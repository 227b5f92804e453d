//! Addresses that another server reports: a sentinel its master's, a cluster node that of the owner of a slot.

use crate::resp::{RespError, RespReader, UNEXPECTED};
use crate::server::RedisServerAddress;

const MAX_HOST_BYTES: usize = 255;

/// Reads the address of a master from a sentinel's answer; none if the sentinel does not know the master.
pub(crate) fn read_master(items: &mut RespReader<'_>) -> Result<Option<RedisServerAddress>, RespError> {
    if items.array()? != 2 {
        return Ok(None);
    }
    let (host, port) = (read_host(items.bulk()?)?, items.bulk()?);
    let port = std::str::from_utf8(port).ok().and_then(|digits| digits.parse().ok()).ok_or(UNEXPECTED)?;
    Ok(Some(RedisServerAddress::Tcp { host, port }))
}

/// Returns the address of a node that another node reported; an empty host stands for the host of the node that was
/// asked.
pub(crate) fn reported_address(asked: &RedisServerAddress, host: String, port: u16) -> RedisServerAddress {
    match asked {
        RedisServerAddress::Tcp { host: same, .. } if host.is_empty() => {
            RedisServerAddress::Tcp { host: same.clone(), port }
        }
        RedisServerAddress::Unix(_) if host.is_empty() => asked.clone(),
        _ => RedisServerAddress::Tcp { host, port },
    }
}

/// Reads the slot table of a cluster, and returns the host and port of the master of this slot; none if no node has it.
pub(crate) fn read_node(items: &mut RespReader<'_>, slot: u16) -> Result<Option<(String, u16)>, RespError> {
    for _ in 0..items.array()? {
        let parts = items.array()?.checked_sub(3).ok_or(UNEXPECTED)?;
        let (first, last) = (items.integer()?, items.integer()?);
        let attributes = items.array()?.checked_sub(2).ok_or(UNEXPECTED)?;
        let host = read_host(items.bulk_or_null()?.unwrap_or_default())?;
        let port = u16::try_from(items.integer()?).map_err(|_| UNEXPECTED)?;
        if (first..=last).contains(&i64::from(slot)) {
            return Ok(Some((host, port)));
        }
        // The master's id and other attributes, and its replicas.
        for _ in 0..attributes + parts {
            items.skip()?;
        }
    }
    Ok(None)
}

/// Reads a host name from another server's answer.
fn read_host(bytes: &[u8]) -> Result<String, RespError> {
    if bytes.len() > MAX_HOST_BYTES { Err(UNEXPECTED) } else { Ok(String::from_utf8_lossy(bytes).into_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_table_yields_the_master_of_a_slot() {
        let reply = b"*2\r\n\
            *4\r\n:0\r\n:5460\r\n*4\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n*0\r\n*3\r\n$1\r\nr\r\n:9\r\n$2\r\nid\r\n\
            *3\r\n:5461\r\n:5461\r\n*3\r\n$-1\r\n:2\r\n$2\r\nid\r\n";
        let master = |slot| read_node(&mut RespReader::new(reply), slot).unwrap();
        assert_eq!(master(0), Some(("a".to_owned(), 1)));
        assert_eq!(master(5461), Some((String::new(), 2)));
        assert_eq!(master(5462), None);
        let address = |host: &str, port| RedisServerAddress::Tcp { host: host.to_owned(), port };
        for (host, expected) in [("", address("h", 2)), ("a", address("a", 2))] {
            assert_eq!(reported_address(&address("h", 7), host.to_owned(), 2), expected);
        }
    }

    #[test]
    fn a_host_name_longer_than_255_bytes_is_refused() {
        for (bytes, is_accepted) in [(255, true), (256, false)] {
            let host = "h".repeat(bytes);
            let master = format!("*2\r\n${bytes}\r\n{host}\r\n$4\r\n6379\r\n");
            let node = format!("*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n${bytes}\r\n{host}\r\n:6379\r\n");
            let found = read_master(&mut RespReader::new(master.as_bytes()));
            assert_eq!(
                found,
                if is_accepted {
                    Ok(Some(RedisServerAddress::Tcp { host: host.clone(), port: 6379 }))
                } else {
                    Err(UNEXPECTED)
                }
            );
            let found = read_node(&mut RespReader::new(node.as_bytes()), 7);
            assert_eq!(found, if is_accepted { Ok(Some((host, 6379))) } else { Err(UNEXPECTED) });
        }
    }
}

//! The origin of a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Origin of a peer, as far as the peer cannot forge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PeerOrigin {
    User(u32),
    /// Host; for IPv6 its network of 64 bits, because a host has as many addresses there as it likes.
    Host(IpAddr),
    Unknown,
}

impl PeerOrigin {
    /// Returns the origin of an address. A user of this host has all of 127.0.0.0/8, so all loopback is one origin.
    pub fn host(address: IpAddr) -> Self {
        Self::Host(match address.to_canonical() {
            address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address => address,
        })
    }
}

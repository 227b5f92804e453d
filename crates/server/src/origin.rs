//! Where a connection comes from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where somebody comes from, as far as that cannot be made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Origin {
    /// A user of this host.
    User(u32),
    /// A host; of version 6 its network, for a host has as many addresses there as it likes.
    Host(IpAddr),
    Unknown,
}

impl Origin {
    /// The origin of a peer's address. A user of this host has all of 127.0.0.0/8, so all loopback is one origin.
    pub fn host(address: IpAddr) -> Self {
        Self::Host(match address.to_canonical() {
            address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address => address,
        })
    }
}

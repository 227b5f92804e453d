//! Origins of connections, and the number of wrong passwords from each.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Max passwords that an origin may try at once.
const MAX_TRIES: u32 = 5;
/// Interval after which an origin without tries left gets another try, in nanoseconds.
const EVERY_NS: i64 = 5_000_000_000;
/// Max remembered origins; beyond it the origin that was silent for longest is forgotten.
const MAX_ORIGINS: usize = 4_096;

/// The address of a host; for IPv6 its /64 network, because a host can use any number of addresses there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostOrigin(pub IpAddr);

impl HostOrigin {
    /// Returns the origin of a peer's address. A local user has all of 127.0.0.0/8, so all loopback is a single origin.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address => address,
        })
    }
}

/// The remaining password tries of each origin: wrong passwords from an origin lock no other origin out.
#[derive(Debug, Default)]
pub(crate) struct PasswordAllowances(BTreeMap<HostOrigin, PasswordAllowance>);

#[derive(Debug)]
struct PasswordAllowance {
    left: u32,
    /// The time at which `left` last increased, in nanoseconds.
    since: i64,
    /// True from the first refusal until the origin has all its tries again.
    was_reported: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyAttempts {
    pub wait_s: i64,
    /// True for the first refusal of an episode.
    pub is_first: bool,
}

impl PasswordAllowances {
    /// Takes a try of an origin before its password is checked, so that simultaneous tries count too.
    pub fn begin(&mut self, origin: HostOrigin, now: i64) -> Result<(), TooManyAttempts> {
        if !self.0.contains_key(&origin) && self.0.len() >= MAX_ORIGINS {
            self.evict_oldest();
        }
        let fresh = PasswordAllowance { left: MAX_TRIES, since: now, was_reported: false };
        let allowance = self.0.entry(origin).or_insert(fresh);
        let more = (now - allowance.since).max(0) / EVERY_NS;
        allowance.since += more * EVERY_NS;
        allowance.left = u32::try_from(more).unwrap_or(MAX_TRIES).saturating_add(allowance.left).min(MAX_TRIES);
        if allowance.left == MAX_TRIES {
            (allowance.since, allowance.was_reported) = (now, false);
        }
        if allowance.left == 0 {
            let is_first = !std::mem::replace(&mut allowance.was_reported, true);
            let left_ns = EVERY_NS - (now - allowance.since);
            return Err(TooManyAttempts { wait_s: left_ns / 1_000_000_000 + 1, is_first });
        }
        allowance.left -= 1;
        Ok(())
    }

    pub fn give_back(&mut self, origin: HostOrigin) {
        if let Some(allowance) = self.0.get_mut(&origin) {
            allowance.left = (allowance.left + 1).min(MAX_TRIES);
        }
    }

    fn evict_oldest(&mut self) {
        let oldest = self.0.iter().min_by_key(|(_, allowance)| allowance.since).map(|(origin, _)| *origin);
        oldest.map(|origin| self.0.remove(&origin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_passwords_delay_only_their_origin() {
        let origin = |text: &str| HostOrigin::of(text.parse().unwrap());
        let (one, other) = (origin("192.0.2.1"), origin("192.0.2.2"));
        let mut tries = PasswordAllowances::default();
        for _ in 0..MAX_TRIES {
            assert_eq!(tries.begin(one, 0), Ok(()));
        }
        assert_eq!(tries.begin(one, 0), Err(TooManyAttempts { wait_s: 6, is_first: true }));
        assert_eq!(tries.begin(one, 1), Err(TooManyAttempts { wait_s: 5, is_first: false }));
        assert_eq!(tries.begin(other, 1), Ok(()));
        assert_eq!(tries.begin(one, EVERY_NS), Ok(()));
        assert!(tries.begin(one, EVERY_NS).is_err(), "one more, and no other");
        for _ in 0..100 {
            assert_eq!(tries.begin(other, 1), Ok(()), "right ones cost nothing");
            tries.give_back(other);
        }
        assert_eq!(tries.begin(one, 100 * EVERY_NS), Ok(()));
    }

    #[test]
    fn a_host_is_one_origin_and_the_table_is_bounded() {
        let origin = |text: &str| HostOrigin::of(text.parse().unwrap());
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        for loopback in ["127.0.0.2", "127.255.255.254", "::1", "::ffff:127.0.0.9"] {
            assert_eq!(origin(loopback), origin("127.0.0.1"));
        }
        let mut tries = PasswordAllowances::default();
        for (index, address) in (0..2 * MAX_ORIGINS as u32).enumerate() {
            let _ = tries.begin(HostOrigin::of(std::net::Ipv4Addr::from(address).into()), index as i64);
        }
        assert_eq!(tries.0.len(), MAX_ORIGINS);
    }
}

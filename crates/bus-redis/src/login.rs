//! Opening of connections: to a ready server, to the master, or to the cluster node that has a name, with the login.

use tickpath_clock::sleep_ns;

use crate::connection::{RedisConnection, is_status};
use crate::error::{RedisServerError, ServerResult};
use crate::host_instant::HostInstant;
use crate::node_address;
use crate::server::{RedisEndpoint, RedisServerAddress, TIMEOUT};

/// Pause between two checks of a server that is not ready yet.
const READY_CHECK_NS: u64 = 20_000_000;

impl RedisConnection {
    /// Connects to a server that is ready. One that is still loading is checked again until the timeout of an answer.
    pub fn open_ready(server: &RedisEndpoint) -> ServerResult<Self> {
        let mut link = Self::open(server)?;
        let start = HostInstant::now(server.clock);
        loop {
            match link.ping().map_err(RedisServerError::at_first_reply) {
                Err(e) if e.is_not_ready() && !start.is_older_than(TIMEOUT.as_nanos() as u64) => {
                    sleep_ns(READY_CHECK_NS)
                }
                // The server can be read, and sends this error to each write.
                Err(RedisServerError::DiskFailure(_)) => return Ok(link),
                answer => return answer.map(|()| link),
            }
        }
    }

    /// Connects and logs in, which a loading server admits. Of several servers, the first master is used.
    pub fn open(server: &RedisEndpoint) -> ServerResult<Self> {
        Self::open_at(server, server.is_one_of_several())
    }

    /// Connects and logs in to a master only: messages published elsewhere do not reach the master's subscribers.
    pub fn open_to_publish(server: &RedisEndpoint) -> ServerResult<Self> {
        Self::open_at(server, true)
    }

    /// Tries one address after the other. The error is the last address's, and is transient if that of any address is.
    fn open_at(server: &RedisEndpoint, must_be_master: bool) -> ServerResult<Self> {
        // Where any node of a cluster will do, a replica will, too.
        let must_be_master = must_be_master && (!server.is_cluster || server.slot().is_some());
        let (mut last, mut may_pass) = (None, false);
        for address in &server.addresses {
            let opened = match (server.sentinel.as_deref(), server.slot()) {
                (Some(master), _) => Self::master_of(server, address, master).and_then(|target| {
                    // Without a login the first request is refused.
                    let opened = Self::login(server, &target).and_then(|mut link| link.is_master().map(|_| link));
                    opened.map_err(|e| match e {
                        RedisServerError::LoginRefused | RedisServerError::LoginRequired => {
                            RedisServerError::MasterLogin { master: target.to_string(), reason: Box::new(e) }
                        }
                        other => other,
                    })
                }),
                (None, Some(slot)) => {
                    Self::node_of(server, address, slot).and_then(|target| Self::login(server, &target))
                }
                (None, None) => Self::login(server, address),
            };
            let opened = opened.and_then(|mut link| {
                let is_good = !must_be_master || link.is_master()?;
                if is_good { Ok(link) } else { Err(RedisServerError::Replica) }
            });
            match opened.map_err(RedisServerError::at_first_reply) {
                Ok(link) => return Ok(link),
                Err(e) => {
                    may_pass |= e.is_transient();
                    last = Some(e);
                }
            }
        }
        Err(match last {
            Some(e) if may_pass && !e.is_transient() => RedisServerError::OneOfSeveral(Box::new(e)),
            last => last.unwrap_or(RedisServerError::ConnectionRefused),
        })
    }

    /// Asks a sentinel for the address of the master.
    fn master_of(
        server: &RedisEndpoint,
        sentinel: &RedisServerAddress,
        master: &str,
    ) -> ServerResult<RedisServerAddress> {
        let mut link = Self::connect(server, sentinel)?;
        let command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master];
        let address = match link.request(&command, node_address::read_master) {
            // Sends the password only after this refusal: a sentinel without a password refuses any.
            Err(RedisServerError::LoginRequired) => {
                link.authenticate(server.sentinel_login()).map_err(|e| match e {
                    RedisServerError::LoginRefused => RedisServerError::SentinelLogin { is_given: true },
                    other => other,
                })?;
                link.request(&command, node_address::read_master).map_err(|e| match e {
                    RedisServerError::LoginRequired => RedisServerError::SentinelLogin { is_given: false },
                    other => other,
                })
            }
            answer => answer,
        };
        let address = address.map_err(|e| e.or_wrong_kind(RedisServerError::NoSentinel))?;
        address.ok_or_else(|| RedisServerError::NoMaster(master.to_owned()))
    }

    /// Asks a cluster node for the master of a slot.
    fn node_of(server: &RedisEndpoint, node: &RedisServerAddress, slot: u16) -> ServerResult<RedisServerAddress> {
        let mut link = Self::login(server, node)?;
        let address = link.request(&["CLUSTER", "SLOTS"], |items| node_address::read_node(items, slot));
        match address.map_err(|e| e.or_wrong_kind(RedisServerError::NoCluster))? {
            Some((host, port)) => Ok(node_address::reported_address(node, host, port)),
            None => Err(RedisServerError::TransientRefusal(format!("no node of the cluster has the slot {slot}"))),
        }
    }

    fn login(server: &RedisEndpoint, address: &RedisServerAddress) -> ServerResult<Self> {
        let mut link = Self::connect(server, address)?;
        link.authenticate(server.login())?;
        if server.database != 0 {
            link.request(&["SELECT", &server.database.to_string()], is_status)?;
        }
        Ok(link)
    }

    fn authenticate(&mut self, login: Option<(Option<&str>, &str)>) -> ServerResult {
        match login {
            Some((Some(user), password)) => self.request(&["AUTH", user, password], is_status),
            Some((None, password)) => self.request(&["AUTH", password], is_status),
            None => Ok(()),
        }
    }
}

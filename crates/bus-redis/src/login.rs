//! Opening of connections: to a ready server, to the master, or to the cluster node that has a name, with the login.

use tickpath_clock::sleep_ns;

use crate::error::ServerError;
use crate::link::{Link, is_status};
use crate::moment::Moment;
use crate::place;
use crate::server::{Address, Server, TIMEOUT};

/// Pause between two checks of a server that is not ready yet.
const LOOK_NS: u64 = 20_000_000;

impl Link {
    /// Connects to a server that is ready. One that is still loading is checked again until the timeout of an answer.
    pub fn open_ready(server: &Server) -> Result<Self, ServerError> {
        let mut link = Self::open(server)?;
        let start = Moment::now(server.clock());
        loop {
            match link.ping().map_err(ServerError::at_first) {
                Err(e) if e.is_not_ready() && !start.is_past(TIMEOUT.as_nanos() as u64) => sleep_ns(LOOK_NS),
                // The server can be read, and sends this error to each write.
                Err(ServerError::NoDisk(_)) => return Ok(link),
                answer => return answer.map(|()| link),
            }
        }
    }

    /// Connects and logs in, which a loading server admits. Of several servers, the first master is used.
    pub fn open(server: &Server) -> Result<Self, ServerError> {
        Self::open_at(server, server.is_one_of_several())
    }

    /// Connects and logs in to a master only: messages published elsewhere do not reach the master's subscribers.
    pub fn open_to_publish(server: &Server) -> Result<Self, ServerError> {
        Self::open_at(server, true)
    }

    /// Tries one address after the other. The error is the last address's, and is transient if that of any address is.
    fn open_at(server: &Server, must_be_master: bool) -> Result<Self, ServerError> {
        // Where any node of a cluster will do, a replica will, too.
        let must_be_master = must_be_master && (!server.is_cluster() || server.slot().is_some());
        let (mut last, mut may_pass) = (None, false);
        for address in server.addresses() {
            let opened = match (server.sentinel(), server.slot()) {
                (Some(master), _) => Self::master_of(server, address, master).and_then(|there| {
                    // Without a login the first request is refused.
                    let opened = Self::login(server, &there).and_then(|mut link| link.is_master().map(|_| link));
                    opened.map_err(|e| match e {
                        ServerError::Login | ServerError::NoLogin => {
                            ServerError::MasterLogin { master: there.to_string(), reason: Box::new(e) }
                        }
                        other => other,
                    })
                }),
                (None, Some(slot)) => {
                    Self::node_of(server, address, slot).and_then(|there| Self::login(server, &there))
                }
                (None, None) => Self::login(server, address),
            };
            let opened = opened.and_then(|mut link| {
                let is_good = !must_be_master || link.is_master()?;
                if is_good { Ok(link) } else { Err(ServerError::Replica) }
            });
            match opened.map_err(ServerError::at_first) {
                Ok(link) => return Ok(link),
                Err(e) => {
                    may_pass |= e.may_pass();
                    last = Some(e);
                }
            }
        }
        Err(match last {
            Some(e) if may_pass && !e.may_pass() => ServerError::OneOfSeveral(Box::new(e)),
            last => last.unwrap_or(ServerError::NobodyListens),
        })
    }

    /// Asks a sentinel for the address of the master.
    fn master_of(server: &Server, sentinel: &Address, master: &str) -> Result<Address, ServerError> {
        let mut link = Self::connect(server, sentinel)?;
        let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master];
        let place = match link.ask(&question, place::read_master) {
            // Sends the password only after this refusal: a sentinel without a password refuses any.
            Err(ServerError::NoLogin) => {
                link.authenticate(server.sentinel_login()).map_err(|e| match e {
                    ServerError::Login => ServerError::SentinelLogin { is_given: true },
                    other => other,
                })?;
                link.ask(&question, place::read_master).map_err(|e| match e {
                    ServerError::NoLogin => ServerError::SentinelLogin { is_given: false },
                    other => other,
                })
            }
            told => told,
        };
        let place = place.map_err(|e| e.of_another_kind(ServerError::NoSentinel))?;
        place.ok_or_else(|| ServerError::NoMaster(master.to_owned()))
    }

    /// Asks a cluster node for the master of a slot.
    fn node_of(server: &Server, node: &Address, slot: u16) -> Result<Address, ServerError> {
        let mut link = Self::login(server, node)?;
        let place = link.ask(&["CLUSTER", "SLOTS"], |items| place::read_node(items, slot));
        match place.map_err(|e| e.of_another_kind(ServerError::NoCluster))? {
            Some((host, port)) => Ok(place::of(node, host, port)),
            None => Err(ServerError::NotNow(format!("no node of the cluster has the slot {slot}"))),
        }
    }

    fn login(server: &Server, address: &Address) -> Result<Self, ServerError> {
        let mut link = Self::connect(server, address)?;
        link.authenticate(server.login())?;
        if server.database() != 0 {
            link.ask(&["SELECT", &server.database().to_string()], is_status)?;
        }
        Ok(link)
    }

    fn authenticate(&mut self, login: Option<(Option<&str>, &str)>) -> Result<(), ServerError> {
        match login {
            Some((Some(user), password)) => self.ask(&["AUTH", user, password], is_status),
            Some((None, password)) => self.ask(&["AUTH", password], is_status),
            None => Ok(()),
        }
    }
}

//! redis-py: with and without hiredis, blocking and on event loops.

use super::client::{Client, Runs};

/// The script of all of them.
const SOURCE: (&str, &str) = ("clients.py", include_str!("../python/clients.py"));

/// All clients of this library.
pub(super) const CLIENTS: &[Client] = &[
    Client::REDIS_PY,
    Client::REDIS_PY_PIPELINE,
    client("redis-py-pure", &[(1, 155)], WITHOUT_HIREDIS),
    Client { is_pipeline: true, ..client("redis-py-pipeline-pure", &[(1, 90)], WITHOUT_HIREDIS) },
    Client::REDIS_PY_ASYNCIO,
    Client::REDIS_PY_UVLOOP,
];

impl Client {
    /// Uses hiredis, with a command at a time.
    pub const REDIS_PY: Self = client("redis-py", &[(1, 140)], WITH_HIREDIS);
    /// Uses hiredis, with both commands of a pair in a pipeline.
    pub const REDIS_PY_PIPELINE: Self =
        Self { is_pipeline: true, ..client("redis-py-pipeline", &[(1, 80)], WITH_HIREDIS) };
    /// Uses hiredis on asyncio's own loop; each worker has its own connection.
    pub const REDIS_PY_ASYNCIO: Self = client("redis-py-asyncio", &[(1, 155), (10, 90), (100, 75)], WITH_HIREDIS);
    /// Uses hiredis on uvloop; each worker has its own connection.
    pub const REDIS_PY_UVLOOP: Self = client(
        "redis-py-uvloop",
        &[(1, 155), (10, 70), (100, 65)],
        Runs::Python { source: SOURCE, hiredis: true, event_loop: Some("uvloop") },
    );
}

const WITHOUT_HIREDIS: Runs = Runs::Python { source: SOURCE, hiredis: false, event_loop: None };
const WITH_HIREDIS: Runs = Runs::Python { source: SOURCE, hiredis: true, event_loop: None };

const fn client(name: &'static str, processes: &'static [(u64, u64)], runs: Runs) -> Client {
    Client { name, library: "redis-py", is_pipeline: false, processes, runs }
}

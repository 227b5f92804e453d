//! redis-py: with and without hiredis, blocking and on event loops.

use super::client::{ClientRuntime, SetGetClient};

/// The script of all of them.
const SOURCE: (&str, &str) = ("clients.py", include_str!("../python/clients.py"));

pub(super) const CLIENTS: &[SetGetClient] = &[
    SetGetClient::REDIS_PY,
    SetGetClient::REDIS_PY_PIPELINE,
    client("redis-py-pure", &[(1, 155)], WITHOUT_HIREDIS),
    SetGetClient { is_pipeline: true, ..client("redis-py-pipeline-pure", &[(1, 90)], WITHOUT_HIREDIS) },
    SetGetClient::REDIS_PY_ASYNCIO,
    SetGetClient::REDIS_PY_UVLOOP,
];

impl SetGetClient {
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
        ClientRuntime::Python { source: SOURCE, hiredis: true, event_loop: Some("uvloop") },
    );
}

const WITHOUT_HIREDIS: ClientRuntime = ClientRuntime::Python { source: SOURCE, hiredis: false, event_loop: None };
const WITH_HIREDIS: ClientRuntime = ClientRuntime::Python { source: SOURCE, hiredis: true, event_loop: None };

const fn client(name: &'static str, processes: &'static [(u64, u64)], runs: ClientRuntime) -> SetGetClient {
    SetGetClient { name, library: "redis-py", is_pipeline: false, processes, runtime: runs }
}

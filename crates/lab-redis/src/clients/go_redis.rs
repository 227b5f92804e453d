//! go-redis: its workers share the pool of connections that the library makes by itself.

use super::client::{Client, Runs};

/// All of them.
pub(super) const CLIENTS: &[Client] = &[
    Client { name: "go-redis", library: "go-redis", is_pipeline: false, processes: &[(1, 90), (100, 45)], runs: RUNS },
    Client { name: "go-redis-pipeline", library: "go-redis", is_pipeline: true, processes: &[(1, 60)], runs: RUNS },
];

const RUNS: Runs = Runs::Go(("set_get.go", include_str!("../go/set_get.go")));

//! go-redis: its workers share the library's own connection pool.

use super::client::{Client, Runs};

/// All clients of this library.
pub(super) const CLIENTS: &[Client] = &[
    Client { name: "go-redis", library: "go-redis", is_pipeline: false, processes: &[(1, 90), (100, 45)], runs: RUNS },
    Client { name: "go-redis-pipeline", library: "go-redis", is_pipeline: true, processes: &[(1, 60)], runs: RUNS },
];

const RUNS: Runs = Runs::Go(("set_get.go", include_str!("../go/set_get.go")));

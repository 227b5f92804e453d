//! go-redis: its workers share the library's own connection pool.

use super::client::{ClientRuntime, SetGetClient};

pub(super) const CLIENTS: &[SetGetClient] = &[
    SetGetClient {
        name: "go-redis",
        library: "go-redis",
        is_pipeline: false,
        processes: &[(1, 90), (100, 45)],
        runtime: GO_RUNTIME,
    },
    SetGetClient {
        name: "go-redis-pipeline",
        library: "go-redis",
        is_pipeline: true,
        processes: &[(1, 60)],
        runtime: GO_RUNTIME,
    },
];

const GO_RUNTIME: ClientRuntime = ClientRuntime::Go(("set_get.go", include_str!("../go/set_get.go")));

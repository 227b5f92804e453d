//! `connect(url)`: the transport that a URL names, and nothing else.
//!
//! | URL                     | transport                           |
//! |-------------------------|-------------------------------------|
//! | `shm://`, `shm://PREFIX`| the log in shared memory            |
//! | `file:///FOLDER`        | the log on a disk                   |
//! | `redis://HOST:PORT`     | Redis publish and subscribe         |

pub use tickpath_bus_api::*;

use tickpath_bus_log::LogBus;
use tickpath_bus_redis::RedisBus;

/// Connects to where topics live.
pub fn connect(url: &str) -> Result<Box<dyn Connection>, ConnectError> {
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("shm" | "file") => Ok(Box::new(LogBus::connect(url)?)),
        Some("redis") => Ok(Box::new(RedisBus::connect(url)?)),
        _ => Err(ConnectError::Url(format!(
            "'{url}' names no transport; use shm://, shm://PREFIX, file:///FOLDER or redis://HOST:PORT"
        ))),
    }
}

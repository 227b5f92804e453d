//! The clients in Rust: the crate redis, blocking and on tokio, over a single connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Connection, IntoConnectionInfo, RedisError, RedisResult};
use tickpath_clock::{Clock, HostClock, pin_to_cpu};

use super::client::{ClientRuntime, SetGetClient, SetGetWork};
use super::role::{SetGetResult, SetGetRole};
use tickpath_lab_harness::samples::{preallocated_rows, save};
use tickpath_lab_harness::{LabError, Parent};

/// All clients of the crate redis: a command at a time; both commands of a pair in a pipeline; and on tokio with a
/// single thread, whose workers share a connection.
pub(super) const CLIENTS: &[SetGetClient] = &[
    client(
        "rust-blocking",
        &[(1, 60)],
        ClientRuntime::Rust {
            work: |role, client, clock| sequential(role, client, clock, two_commands),
            runtime: None,
        },
    ),
    SetGetClient {
        is_pipeline: true,
        ..client(
            "rust-pipeline",
            &[(1, 40)],
            ClientRuntime::Rust {
                work: |role, client, clock| sequential(role, client, clock, one_pipeline),
                runtime: None,
            },
        )
    },
    client(
        "rust-async",
        &[(1, 80), (100, 15)],
        ClientRuntime::Rust { work: concurrent, runtime: Some("tokio, one thread") },
    ),
];

const fn client(name: &'static str, processes: &'static [(u64, u64)], runs: ClientRuntime) -> SetGetClient {
    SetGetClient { name, library: "redis-rs", is_pipeline: false, processes, runtime: runs }
}

/// The version of the crate redis, as in Cargo.lock.
pub(super) const VERSION: &str = "1.8.1";

/// Max time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The start and the end of a pair, in ticks.
type PairStamps = [u64; 2];

/// A pair: sets a key, and returns its value afterwards.
type SetGetCall = fn(&mut Connection, &str, &str) -> RedisResult<Option<String>>;

pub(super) fn set_get(role: &SetGetRole, work: SetGetWork, parent: &Parent) -> Result<(), LabError> {
    let clock = HostClock::get()?;
    if let Some(cpu) = role.cpu {
        pin_to_cpu(cpu)?;
    }
    let client = open(&role.url).map_err(|e| failed(&e))?;
    parent.ready();
    if parent.receive().is_none() {
        return Ok(());
    }
    let (outcome, rows) = work(role, &client, &clock).map_err(|e| failed(&e))?;
    save(&role.out, &rows)?;
    parent.result(&outcome);
    Ok(())
}

/// Runs pair after pair over a single connection.
fn sequential(
    role: &SetGetRole,
    client: &redis::Client,
    clock: &HostClock,
    pair: SetGetCall,
) -> RedisResult<(SetGetResult, Vec<PairStamps>)> {
    let mut rows: Vec<PairStamps> = preallocated_rows(role.count as usize);
    let from = clock.ticks();
    let mut connection = client.get_connection_with_timeout(CONNECT_TIMEOUT)?;
    connection.set_read_timeout(Some(answer_timeout(role)))?;
    connection.set_write_timeout(Some(answer_timeout(role)))?;
    redis::cmd("PING").exec(&mut connection)?;
    let connected = clock.ticks();
    let (mut began, mut mismatched) = (connected, 0);
    for number in 0..role.count {
        let (key, value) = role.pair(number);
        let found = pair(&mut connection, &key, &value)?;
        mismatched += u64::from(found.as_deref() != Some(value.as_str()));
        let ended = clock.ticks();
        rows.push([began, ended]);
        began = ended;
    }
    Ok((outcome(clock, from, connected, &rows, mismatched), rows))
}

/// Sends two commands in two round trips.
fn two_commands(connection: &mut Connection, key: &str, value: &str) -> RedisResult<Option<String>> {
    redis::cmd("SET").arg(key).arg(value).exec(connection)?;
    redis::cmd("GET").arg(key).query(connection)
}

/// Sends two commands in a single round trip.
fn one_pipeline(connection: &mut Connection, key: &str, value: &str) -> RedisResult<Option<String>> {
    let mut pipeline = redis::pipe();
    pipeline.cmd("SET").arg(key).arg(value).ignore().cmd("GET").arg(key);
    let (found,): (Option<String>,) = pipeline.query(connection)?;
    Ok(found)
}

/// Runs workers that take turns on a single thread and share a connection.
fn concurrent(
    role: &SetGetRole,
    client: &redis::Client,
    clock: &HostClock,
) -> RedisResult<(SetGetResult, Vec<PairStamps>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(all_workers(Arc::new(role.clone()), client, clock))
}

async fn all_workers(
    role: Arc<SetGetRole>,
    client: &redis::Client,
    clock: &HostClock,
) -> RedisResult<(SetGetResult, Vec<PairStamps>)> {
    // The library's own limit of half a second would count a far server as a failure.
    let limits = AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_TIMEOUT));
    let limits = limits.set_response_timeout(Some(answer_timeout(&role)));
    let from = clock.ticks();
    let mut connection = client.get_multiplexed_async_connection_with_config(&limits).await?;
    redis::cmd("PING").exec_async(&mut connection).await?;
    let connected = clock.ticks();
    let start = |first| tokio::spawn(worker(connection.clone(), role.clone(), first, *clock));
    let workers: Vec<_> = (0..role.workers).map(start).collect();
    let (mut rows, mut mismatched) = (Vec::with_capacity(role.count as usize), 0);
    for worker in workers {
        let share = worker.await.map_err(io::Error::other)??;
        rows.extend(share.rows);
        mismatched += share.mismatched;
    }
    Ok((outcome(clock, from, connected, &rows, mismatched), rows))
}

struct WorkerResult {
    rows: Vec<PairStamps>,
    mismatched: u64,
}

/// Runs every n-th pair from `first` on, for n workers: two commands in two round trips, during which other workers
/// run.
async fn worker(
    mut connection: MultiplexedConnection,
    role: Arc<SetGetRole>,
    first: u64,
    clock: HostClock,
) -> RedisResult<WorkerResult> {
    let mut share = WorkerResult { rows: Vec::new(), mismatched: 0 };
    let mut began = clock.ticks();
    for number in (first..role.count).step_by(role.workers as usize) {
        let (key, value) = role.pair(number);
        redis::cmd("SET").arg(key.as_str()).arg(value.as_str()).exec_async(&mut connection).await?;
        let found: Option<String> = redis::cmd("GET").arg(key.as_str()).query_async(&mut connection).await?;
        share.mismatched += u64::from(found.as_deref() != Some(value.as_str()));
        let ended = clock.ticks();
        share.rows.push([began, ended]);
        began = ended;
    }
    Ok(share)
}

fn open(url: &str) -> RedisResult<redis::Client> {
    // TCP_NODELAY like redis-py: without it a small command can wait for the acknowledgement of the previous command.
    let settings = TcpSettings::default().set_nodelay(true);
    redis::Client::open(url.into_connection_info()?.set_tcp_settings(settings))
}

fn answer_timeout(role: &SetGetRole) -> Duration {
    Duration::from_secs_f64(role.silence_s)
}

fn outcome(clock: &HostClock, from: u64, connected: u64, rows: &[PairStamps], mismatched: u64) -> SetGetResult {
    let ended = rows.iter().map(|[_, ended]| *ended).max().unwrap_or(connected);
    let ns = |from, to| clock.ns_between(from, to).max(0) as u64;
    SetGetResult {
        connect_ns: ns(from, connected),
        elapsed_ns: ns(connected, ended),
        pairs: rows.len() as u64,
        mismatched,
    }
}

fn failed(error: &RedisError) -> LabError {
    LabError::Failed(format!("{error}; look whether the server is still there, and try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_of_the_lock_file() {
        let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
        let entry = format!("name = \"redis\"\nversion = \"{VERSION}\"\n");
        assert!(lock.contains(&entry), "Cargo.lock has no crate redis {VERSION}; write its version here");
    }
}

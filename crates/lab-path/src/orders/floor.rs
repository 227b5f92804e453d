//! The cost of one `send` on this host: a frame as an OMS sends it to a venue, on a loopback TCP connection whose other
//! end is read, from the OMS's CPU. The thread polls its socket without a pause between two sends, as a busy OMS does.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_clock::{Clock, HostClock, Wait, pin_to_cpu};
use tickpath_market::{Kind, NewOrder};
use tickpath_oms_protocol::write_frame;
use zerocopy::IntoBytes;

use super::settings::Settings;
use tickpath_lab_harness::samples::{Samples, load, save};
use tickpath_lab_harness::{Lab, LabError, Parent, ProcessRole, ThreadConfig};

/// Interval between two sends where the orders have no pace.
const INTERVAL_NS: u64 = 20_000;

/// Duration of each half of the measurement, and its min and max number of sends.
const HALF_DURATION_NS: u64 = 1_000_000_000;
const SEND_COUNT_BOUNDS: (u64, u64) = (200, 5_000);

/// Role of a process that sends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SenderRole {
    /// Its CPU.
    pub cpu: usize,
    /// The CPU and wait mode of the reading thread.
    pub peer: ThreadConfig,
    /// The number of frames to send.
    pub count: u64,
    /// Nanoseconds between two sends.
    pub interval_ns: u64,
    /// The file of the stamps before and after each send.
    pub out: PathBuf,
}

impl ProcessRole for SenderRole {
    const NAME: &'static str = "sender";

    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        let clock = HostClock::get()?;
        let failed = |e: std::io::Error| LabError::Failed(format!("the loopback socket failed: {e}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let stream = TcpStream::connect(listener.local_addr().map_err(failed)?).map_err(failed)?;
        let (peer, _) = listener.accept().map_err(failed)?;
        let thread = self.peer.clone();
        let reader = std::thread::spawn(move || thread.apply().and_then(|()| read_all(peer, thread.wait()?)));
        pin_to_cpu(self.cpu)?;
        parent.ready();
        let rows = send_all(&clock, stream, self).map_err(failed)?;
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        save(&self.out, &rows)?;
        parent.result(&());
        Ok(())
    }
}

/// Measures a half, before the OMS has its CPU or after it has left it.
pub(super) fn measure_sends(lab: &Lab<'_>, settings: &Settings, shared: Wait) -> Result<Samples, LabError> {
    let interval_ns = settings.rate.map_or(INTERVAL_NS, |rate| (1e9 / rate) as u64).max(1);
    let count = (HALF_DURATION_NS / interval_ns).clamp(SEND_COUNT_BOUNDS.0, SEND_COUNT_BOUNDS.1);
    let out = lab.folder().join("sender");
    let [peer, cpu] = settings.cpus;
    let peer = ThreadConfig::new(peer, shared, tickpath_clock::Priority::Normal);
    let role = SenderRole { cpu, peer, count, interval_ns, out: out.clone() };
    let mut child = lab.spawn(&role)?;
    child.result::<()>((count * interval_ns) as f64 / 1e9)?;
    Ok(Samples(load::<2>(&out)?.into_iter().map(|[from, to]| (from, to)).collect()))
}

fn send_all(clock: &HostClock, mut stream: TcpStream, role: &SenderRole) -> std::io::Result<Vec<[u64; 2]>> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let order = NewOrder::default();
    let mut frame = Vec::new();
    write_frame(&mut frame, Kind::NewOrder.code(), 0, 0, order.as_bytes());
    let mut rows = Vec::with_capacity(role.count as usize);
    let pause = clock.calibration().ticks_of_ns(role.interval_ns);
    let start = clock.ticks() + pause;
    for i in 0..role.count {
        while clock.ticks() < start + i * pause {
            // No byte ever arrives: the read only costs the poll.
            let _ = stream.read(&mut [0; 64]);
        }
        let from = clock.ticks();
        stream.write_all(&frame)?;
        rows.push([from, clock.ticks()]);
    }
    Ok(rows)
}

fn read_all(mut peer: TcpStream, wait: Wait) -> Result<(), LabError> {
    let failed = |e: std::io::Error| LabError::Failed(format!("the loopback socket failed: {e}"));
    peer.set_nonblocking(wait != Wait::Block).map_err(failed)?;
    let mut room = [0; 4096];
    loop {
        match peer.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => wait.idle(),
            Err(e) => return Err(failed(e)),
        }
    }
}

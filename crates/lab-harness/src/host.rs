//! `host`: the machine's costs without any message.
//!
//! ```text
//!   spin      a thread reads the clock in a loop; its longest turns are time that the host took
//!   transfer  two processes on two CPUs pass a cache line to and fro: half a round trip
//!   loopback  the same over a TCP socket on this machine
//!   wake-up   a thread sleeps on the second CPU, a thread on the first wakes it
//! ```
//! The results are valid only if no other process runs on the two CPUs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use tickpath_clock::{
    Calibration, Clock, ClockOffset, HostClock, SchedulingGap, WakeUpSamples, cpus, pin_to_cpu, relax,
};
use tickpath_log::SharedWords;

use crate::samples::Samples;
use crate::{Lab, LabError, Parent, ProcessRole};
use serde::{Deserialize, Serialize};
use tickpath_lab_result::{Host, Run, Series, histogram};

/// Role that answers on a shared cache line or on a socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EchoRole {
    /// Name of the shared words to answer on; a socket if absent.
    pub words: Option<String>,
    /// CPU of the process.
    pub cpu: usize,
}

/// Settings of the `host` measurement.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Duration of the spin, in seconds.
    pub seconds: f64,
    /// Spinning CPU, and the CPU of the other process.
    pub cpus: [usize; 2],
}

/// Round trips of one timing, whose sum hides the counter's own steps of some nanoseconds.
const TRIPS: u64 = 16;

/// Timeout of an answer, in seconds, longer than any stall of the host.
const ANSWER_TIMEOUT_S: u64 = 30;

/// Polls for an answer between two readings of the clock.
const POLLS_PER_CLOCK_READ: u32 = 1 << 20;

/// Number of timings of the cache line.
const TIMINGS: usize = 20_000;

/// Max duration of the timings, and of the stamped round trips, in nanoseconds.
const MAX_TIMINGS_NS: i64 = 250_000_000;

/// Number of round trips with stamps of both sides.
const STAMPED_TRIPS: u64 = 2_000;
/// Bit of a turn's number that asks for a stamp.
const STAMPED: u64 = 1 << 62;

/// Number of stamps in one measurement of their cost.
const STAMPS: u32 = 1_000_000;

/// Measures the host: its facts and costs, and a run with the distributions.
pub fn run(lab: &Lab<'_>, settings: &Settings) -> Result<(Host, Run), LabError> {
    lab.step("host: clock, cache line, loopback", 1.5)?;
    let mut host = facts(&lab.clock);
    let before = cpu_times();
    let transfer = measure_transfer(lab, settings.cpus, TIMINGS)?.map(|crossing| crossing.transfer_ns);
    let loopback = loopback(lab, settings.cpus)?;
    lab.step("host: spinning", settings.seconds)?;
    let clock = lab.clock;
    let (cpu, seconds) = (settings.cpus[0], settings.seconds);
    let spin = on_cpu(cpu, move || SpinLoop::measure(&clock, seconds))??;
    let clock_cost = on_cpu(cpu, move || clock_cost_ns(&clock))?;
    let record_cost = on_cpu(cpu, move || record_cost_ns(&clock))?;
    host.clock_cost_ns = Some(clock_cost);
    host.cache_line_transfer_ns = transfer;
    host.steal_percent = steal_percent(before, cpu_times());
    let mut run = spin.into_run(&clock);
    host.spin_gap_p9999_ns = run.hops.get("spin_gap").and_then(|hop| hop.percentiles()[5]).map(|ns| ns as f64);
    run.params.set("cpus", settings.cpus.to_vec());
    run.hops.insert("round_trip".to_owned(), loopback.unwatched_hop(clock.calibration()));
    let figures = [
        ("clock_cost_ns", clock_cost),
        ("record_cost_ns", record_cost),
        ("loopback_round_trip_ns", loopback.p50_ns(clock.calibration())),
    ];
    run.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
    let measured = [("cache_line_transfer_ns", transfer), ("steal_percent", host.steal_percent)];
    run.figures.extend(measured.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Ok((host, run))
}

/// Measures the floor for another workload's run: as [`run`], but shorter, and without a run of its own.
pub fn measure_host_floor(lab: &Lab<'_>, cpus: [usize; 2]) -> Result<Host, LabError> {
    const SECONDS: f64 = 0.3;
    run(lab, &Settings { seconds: SECONDS, cpus }).map(|(host, _)| host)
}

/// Measures the wake-up of a sleeping thread. Adds its times to the run's hops, and their parts to its notes.
pub fn wake_ups(lab: &Lab<'_>, [waker, sleeper]: [usize; 2], run: &mut Run) -> Result<(), LabError> {
    /// Enough for a 99th percentile, even if some rounds do not count.
    const ROUNDS: usize = 1_050;
    lab.step("host: wake-ups", 0.8)?;
    let woken = WakeUpSamples::measure([sleeper, waker], ROUNDS)?;
    let hops = [("wake_call", &woken.calls_ns), ("wake_up", &woken.asleep_ns), ("wake_up_awake", &woken.awake_ns)];
    for (name, ns) in hops.into_iter().filter(|(_, ns)| !ns.is_empty()) {
        let samples = Samples(ns.iter().map(|ns| (0, *ns)).collect());
        run.hops.insert(name.to_owned(), samples.unwatched_hop(&Calibration::nanoseconds()));
    }
    run.notes.extend(woken.medians().map(|wake_up| format!("a wake-up takes {wake_up}")));
    Ok(())
}

/// Reads the facts of the machine that need no measurement.
pub fn facts(clock: &HostClock) -> Host {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let hypervised = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    Host {
        cpu: field("model name").unwrap_or_else(|| "unknown".to_owned()),
        cores: cpus().len() as u32,
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        hypervisor: hypervised.then(|| read("/sys/hypervisor/type").unwrap_or_else(|| "yes".to_owned())),
        clock_source: clock.calibration().source().map_or("unknown", |source| source.name()).to_owned(),
        ..Host::default()
    }
}

/// Result of passing a cache line to and fro between two processors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferTiming {
    /// Median of half a round trip, in nanoseconds.
    pub transfer_ns: f64,
    /// Lead of the second processor's counter over the first one's.
    pub offset: ClockOffset,
}

/// Guard that removes shared words however the measurement ends.
struct SharedWordsGuard<'a>(&'a str);

impl Drop for SharedWordsGuard<'_> {
    fn drop(&mut self) {
        // Nothing more can be done if this fails.
        let _ = SharedWords::remove(self.0);
    }
}

/// Measures the bare transfer of a cache line between two processes by at most `timings` timings, and the offset of the
/// two counters by stamps. Returns none if both CPUs are the same.
pub fn measure_transfer(lab: &Lab<'_>, cpus: [usize; 2], timings: usize) -> Result<Option<TransferTiming>, LabError> {
    if cpus[0] == cpus[1] {
        return Ok(None);
    }
    let name = format!("{}.transfer", lab.name);
    let echo = EchoRole { words: Some(name.clone()), cpu: cpus[1] };
    let words = SharedWords::open(&name).map_err(|e| LabError::file("/dev/shm".as_ref(), e))?;
    let _removed = SharedWordsGuard(&name);
    let mut child = lab.spawn(&echo)?;
    let (clock, echo) = (lab.clock, child.id());
    let measured = on_cpu(cpus[0], move || {
        let asks = EchoClient { words: &words, clock: &clock, echo };
        let measured = asks.time_round_trips(timings).zip(asks.measure_offset());
        words.word(0).store(u64::MAX, Ordering::Release);
        measured
    });
    let silent = || LabError::Silent { role: "echo".to_owned(), seconds: ANSWER_TIMEOUT_S };
    let (mut ns, offset) = measured?.ok_or_else(silent)?;
    child.result::<()>(1.0)?;
    let middle = ns.len() / 2;
    let transfer_ns = *ns.select_nth_unstable(middle).1 as f64 / (2 * TRIPS) as f64;
    Ok(Some(TransferTiming { transfer_ns, offset }))
}

/// Takes items until [`MAX_TIMINGS_NS`] have passed, but at least one: with a busy neighbour each item waits for the
/// CPU.
fn take_in_time<T>(clock: &HostClock, each: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let (start, mut is_first) = (clock.ticks(), true);
    each.take_while(move |_| std::mem::take(&mut is_first) || clock.ns_between(start, clock.ticks()) < MAX_TIMINGS_NS)
}

/// Client of the echo process over shared words.
struct EchoClient<'a> {
    words: &'a SharedWords,
    clock: &'a HostClock,
    /// Process id of the echo process.
    echo: u32,
}

impl EchoClient<'_> {
    /// Times [`TRIPS`] round trips at once, `timings` times or until the time is up. Returns none if no answer comes.
    fn time_round_trips(&self, timings: usize) -> Option<Vec<i64>> {
        let once = |timing: u64| {
            let from = self.clock.ticks();
            (1..=TRIPS).try_for_each(|trip| self.round_trip(timing * TRIPS + trip))?;
            Some(self.clock.ns_between(from, self.clock.ticks()))
        };
        take_in_time(self.clock, (0..timings as u64).map(once)).collect()
    }

    /// Measures the offset of the two counters. Repeats a measurement that shows an offset, because a virtual machine
    /// may show a few nanoseconds by mistake.
    fn measure_offset(&self) -> Option<ClockOffset> {
        let found = self.stamped_offset(0)?;
        if found.is_apart() { Some(found.confirmed_by(self.stamped_offset(1)?)) } else { Some(found) }
    }

    /// Measures the offset from round trips with three stamps each: here, there, and here again. `time` is 0 for the
    /// first measurement and 1 for its repetition.
    fn stamped_offset(&self, time: u64) -> Option<ClockOffset> {
        let once = |trip: u64| {
            let out = self.clock.ticks();
            self.round_trip(STAMPED | (time * STAMPED_TRIPS + trip))?;
            let back = self.clock.ticks();
            Some([out, self.words.word(2).load(Ordering::Relaxed), back])
        };
        let trips: Option<Vec<[u64; 3]>> = take_in_time(self.clock, (1..=STAMPED_TRIPS).map(once)).collect();
        ClockOffset::of(&trips?, self.clock.calibration())
    }

    /// Sets the shared word, and waits for the answer. Returns none after [`ANSWER_TIMEOUT_S`] or the end of the echo
    /// process.
    fn round_trip(&self, turn: u64) -> Option<()> {
        self.words.word(0).store(turn, Ordering::Release);
        let (mut polls, mut since) = (0u32, None);
        while self.words.word(1).load(Ordering::Acquire) != turn {
            relax();
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(POLLS_PER_CLOCK_READ) {
                let now = self.clock.ticks();
                let silent_s = self.clock.ns_between(*since.get_or_insert(now), now) / 1_000_000_000;
                if silent_s > ANSWER_TIMEOUT_S as i64 || is_gone(self.echo) {
                    return None;
                }
            }
        }
        Some(())
    }
}

/// Returns whether a process has ended, even if it is a zombie.
fn is_gone(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// Measures round trips over a loopback socket, each end on its own CPU.
fn loopback(lab: &Lab<'_>, cpus: [usize; 2]) -> Result<Samples, LabError> {
    const ROUNDS: usize = 5_000;
    let mut child = lab.spawn(&EchoRole { words: None, cpu: cpus[1] })?;
    let port: u16 = child.result(1.0)?;
    let clock = lab.clock;
    let work = move || -> std::io::Result<Samples> {
        let mut socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_nodelay(true)?;
        let mut samples = Samples::with_capacity(ROUNDS);
        let mut answer = [0; 8];
        for _ in 0..ROUNDS {
            let from = clock.ticks();
            socket.write_all(&from.to_le_bytes())?;
            socket.read_exact(&mut answer)?;
            samples.push(from, clock.ticks());
        }
        Ok(samples)
    };
    on_cpu(cpus[0], work)?.map_err(|e| LabError::Failed(format!("the loopback socket failed: {e}")))
}

impl ProcessRole for EchoRole {
    const NAME: &'static str = "echo";

    /// Answers each new turn in the shared word, or each eight bytes of a connection.
    fn play(&self, parent: &Parent) -> Result<(), LabError> {
        pin_to_cpu(self.cpu)?;
        let Some(name) = &self.words else { return echo_socket(parent) };
        let words = SharedWords::open(name).map_err(|e| LabError::file("/dev/shm".as_ref(), e))?;
        let clock = HostClock::get()?;
        parent.ready();
        let stop = parent.stop_flag();
        let mut last = 0;
        loop {
            let turn = words.word(0).load(Ordering::Acquire);
            if turn == u64::MAX || stop.load(Ordering::Relaxed) {
                break;
            }
            if turn != last {
                last = turn;
                if turn & STAMPED != 0 {
                    words.word(2).store(clock.ticks(), Ordering::Relaxed);
                }
                words.word(1).store(turn, Ordering::Release);
            }
            relax();
        }
        parent.result(&());
        Ok(())
    }
}

fn echo_socket(parent: &Parent) -> Result<(), LabError> {
    let failed = |e: std::io::Error| LabError::Failed(format!("the loopback socket failed: {e}"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    parent.ready();
    parent.result(&listener.local_addr().map_err(failed)?.port());
    let (mut socket, _) = listener.accept().map_err(failed)?;
    socket.set_nodelay(true).map_err(failed)?;
    let mut message = [0; 8];
    while socket.read_exact(&mut message).is_ok() {
        socket.write_all(&message).map_err(failed)?;
    }
    Ok(())
}

/// Runs work on a pinned thread of its own, so that the caller keeps its affinity.
pub fn on_cpu<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    std::thread::scope(|scope| {
        let pinned = scope.spawn(move || pin_to_cpu(cpu).map(|()| work()));
        pinned.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(LabError::from)
    })
}

/// Measures the cost of a stamp on this thread, in nanoseconds.
pub fn clock_cost_ns(clock: &HostClock) -> f64 {
    let from = clock.ticks();
    let mut last = from;
    for _ in 0..STAMPS {
        last = std::hint::black_box(clock.ticks());
    }
    clock.ns_between(from, last) as f64 / f64::from(STAMPS)
}

/// Measures the cost of a sample, a stamp and a histogram entry together, in nanoseconds.
fn record_cost_ns(clock: &HostClock) -> f64 {
    let mut entries = histogram();
    let from = clock.ticks();
    let mut last = from;
    for _ in 0..STAMPS {
        let now = clock.ticks();
        entries.record(clock.ns_between(last, now) as u64).expect("an auto-sized histogram takes any value");
        last = now;
    }
    std::hint::black_box(&entries);
    clock.ns_between(from, last) as f64 / f64::from(STAMPS)
}

/// Result of a loop that only reads the clock.
struct SpinLoop {
    entries: hdrhistogram::Histogram<u64>,
    loops: u64,
    elapsed_ns: u64,
    worst: [u64; 3],
    /// Time and value of each new maximum, in nanoseconds.
    maxima: Vec<(u64, u64)>,
}

impl SpinLoop {
    fn measure(clock: &HostClock, seconds: f64) -> Result<Self, LabError> {
        if !(seconds > 0.0 && seconds <= 86_400.0) {
            return Err(LabError::Setting(format!("a duration of {seconds} s is not possible; use 0.1 to 86400")));
        }
        let mut spin = Self { entries: histogram(), loops: 0, elapsed_ns: 0, worst: [0; 3], maxima: Vec::new() };
        let start = clock.ticks();
        let end = start + clock.calibration().ticks_of_ns((seconds * 1e9) as u64);
        let mut last = start;
        while last < end {
            let now = clock.ticks();
            spin.record(clock.ns_between(last, now) as u64, clock.ns_between(start, now) as u64);
            // Reads the clock again, because the time of the recording is not the host's.
            last = clock.ticks();
        }
        spin.elapsed_ns = clock.ns_between(start, last) as u64;
        Ok(spin)
    }

    #[inline(always)]
    fn record(&mut self, ns: u64, at_ns: u64) {
        self.loops += 1;
        self.entries.record(ns).expect("an auto-sized histogram takes any value");
        if ns > self.worst[0] {
            if ns > self.worst[2] {
                self.maxima.push((at_ns, ns));
            }
            self.worst[0] = ns;
            self.worst.sort_unstable();
        }
    }

    fn into_run(self, clock: &HostClock) -> Run {
        let average = self.entries.mean();
        let worst = self.worst[2] as f64;
        let hop = tickpath_lab_result::Hop::from_histogram(&self.entries, None, 0, self.worst);
        let figures = [
            ("spin_loops", self.loops as f64),
            ("spin_average_ns", average),
            ("spin_worst_ns", worst),
            ("spin_worst_times_average_ratio", worst / average.max(1e-9)),
        ];
        let (t_ns, value) = self.maxima.iter().map(|&(t, v)| (t, v as f64)).unzip();
        Run {
            target: "host".to_owned(),
            client: "rust".to_owned(),
            repeat: 1,
            valid: true,
            notes: vec![format!("stamps come from {}", facts(clock).clock_source)],
            elapsed_ns: Some(self.elapsed_ns),
            figures: figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            series: vec![Series { name: "running_maximum_ns".to_owned(), t_ns, value }],
            hops: [("spin_gap".to_owned(), hop)].into(),
            ..Run::default()
        }
    }
}

/// Duration of the watch of an idle thread, in nanoseconds.
pub(crate) const IDLE_NS: u64 = 200_000_000;

/// Returns the gaps of an idle spinning thread, the floor for a judgement of a run's gaps.
pub fn idle_gaps(clock: &HostClock, cpu: usize) -> Result<Vec<SchedulingGap>, LabError> {
    let clock = *clock;
    on_cpu(cpu, move || {
        let mut gaps = tickpath_clock::GapDetector::new(clock);
        let end = clock.ticks() + clock.calibration().ticks_of_ns(IDLE_NS);
        while clock.ticks() < end {
            gaps.empty_turn();
        }
        gaps.into_gaps()
    })
}

/// Returns the jiffies of all CPUs, total and stolen.
pub(crate) fn cpu_times() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let times: Vec<u64> = stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    Some((times.iter().take(8).sum(), *times.get(7)?))
}

/// Returns the stolen share between two readings, in percent.
pub(crate) fn steal_percent(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<f64> {
    let ((total, stolen), (total_after, stolen_after)) = (before?, after?);
    let total = total_after.checked_sub(total).filter(|total| *total > 0)?;
    Some(100.0 * (stolen_after.saturating_sub(stolen)) as f64 / total as f64)
}

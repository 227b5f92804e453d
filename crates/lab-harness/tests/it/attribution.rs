//! Attribution of a run's stalls: to the host, or to the processes measured.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use proptest::prelude::*;
use tickpath_clock::{
    Calibration, Clock, GapCause, GapDetector, HostClock, Pacer, SchedulingGap, Wait, pin_to_cpu, sleep_ns, track_stops,
};
use tickpath_lab_harness::attribution::{attribute_common_stops, note_stalls, stalled_ns};
use tickpath_lab_harness::memory;
use tickpath_lab_harness::rules::refuse_starved;
use tickpath_lab_harness::samples::{Samples, load_gaps, save_gaps};
use tickpath_lab_result::Run;

const fn gap(from: u64, to: u64, cause: GapCause) -> SchedulingGap {
    SchedulingGap { from, to, cause }
}

/// Returns the number of samples that these gaps do not explain.
fn left(samples: &[(u64, u64)], gaps: &[SchedulingGap]) -> Option<u64> {
    Samples(samples.to_vec()).hop(&Calibration::nanoseconds(), gaps).unstalled.map(|rest| rest.count)
}

#[test]
fn a_stall_of_the_server_stays_in_whatever_ticks_fall_into_it() {
    let ticks: Vec<SchedulingGap> =
        (0..5).map(|ms| gap(ms * 1_000_000, ms * 1_000_000 + 4_000, GapCause::Host)).collect();
    assert_eq!(left(&[(1_000, 5_001_000)], &ticks), Some(1), "5 ms are not explained by 5 times 4 µs");
    assert_eq!(left(&[(1_000, 5_001_000)], &[gap(0, 4_900_000, GapCause::Host)]), Some(0), "they are by 4.9 ms");
}

#[test]
fn only_host_stalls_known_to_the_kernel_explain_a_sample() {
    for cause in GapCause::ALL {
        let is_host = cause == GapCause::Host;
        assert_eq!(left(&[(10, 110)], &[gap(0, 200, cause)]), Some(u64::from(!is_host)), "{cause:?}");
    }
}

/// The rule as a naive model: it looks at each tick.
fn is_explained(from: u64, to: u64, gaps: &[SchedulingGap]) -> bool {
    let in_a_gap = |tick: u64| gaps.iter().any(|gap| gap.cause == GapCause::Host && gap.from <= tick && tick < gap.to);
    let inside = (from..to).filter(|&tick| in_a_gap(tick)).count() as u64;
    to > from && inside * 10 >= (to - from) * 9
}

proptest! {
    #[test]
    fn excluded_samples_match_a_naive_model(
        gaps in prop::collection::vec((0u64..400, 0u64..60, 0usize..5), 0..12),
        samples in prop::collection::vec((0u64..400, 0u64..80), 1..40),
    ) {
        let gaps: Vec<SchedulingGap> = gaps.iter().map(|&(from, ticks, code)| gap(from, from + ticks, GapCause::ALL[code])).collect();
        let samples: Vec<(u64, u64)> = samples.iter().map(|&(from, ticks)| (from, from + ticks)).collect();
        let stay = samples.iter().filter(|&&(from, to)| !is_explained(from, to, &gaps)).count() as u64;
        prop_assert_eq!(left(&samples, &gaps), Some(stay));
    }
}

#[test]
fn negative_differences_are_counted_and_the_worst_is_kept() {
    let hop = Samples(vec![(10, 5), (10, 15), (3_000, 1_000)]).hop(&Calibration::nanoseconds(), &[]);
    assert_eq!((hop.count, hop.negative, hop.negative_max_ns), (1, 2, Some(2_000)));
}

#[test]
fn gaps_keep_their_causes_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let gaps: Vec<SchedulingGap> = (0..).zip(GapCause::ALL).map(|(at, cause)| gap(at, at + 3, cause)).collect();
    save_gaps(&folder.path().join("gaps"), &gaps).expect("it can be written");
    assert_eq!(load_gaps(&folder.path().join("gaps")).expect("it can be read"), gaps);
}

#[test]
fn a_stop_of_all_threads_counts_as_the_hosts() {
    let [stop, tick] = [gap(100, 200, GapCause::Stopped), gap(300, 310, GapCause::Host)];
    let stopped = |from, to| gap(from, to, GapCause::Stopped);
    let whole = |from, to| gap(from, to, GapCause::Host);
    for (others, parts) in [
        (vec![vec![stopped(90, 210)]], vec![whole(100, 200)]),
        (vec![vec![stopped(120, 210)]], vec![stopped(100, 120), whole(120, 200)]),
        (
            vec![vec![stopped(110, 120), stopped(150, 160)]],
            vec![stopped(100, 110), whole(110, 120), stopped(120, 150), whole(150, 160), stopped(160, 200)],
        ),
        (vec![vec![stopped(90, 210)], vec![whole(90, 210)]], vec![stop]),
        (vec![vec![stopped(200, 300)]], vec![stop]),
        (vec![], vec![stop]),
    ] {
        let lists: Vec<&[SchedulingGap]> = others.iter().map(Vec::as_slice).collect();
        assert_eq!(attribute_common_stops(&[stop, tick], &lists), [parts, vec![tick]].concat(), "{others:?}");
    }
}

#[test]
fn a_starved_process_is_noted_and_invalidates_its_run() {
    let calibration = Calibration::nanoseconds();
    for (preempted_ns, notes, valid) in [(500, 0, true), (5_000, 1, true), (20_000, 2, false)] {
        let gaps = [gap(0, preempted_ns, GapCause::Preempted), gap(60_000, 90_000, GapCause::Host)];
        let mut run = Run { valid: true, ..Run::default() };
        note_stalls(&mut run, "subscriber", &gaps, 1_000_000, &calibration);
        refuse_starved(&mut run, "subscriber", stalled_ns(&gaps, GapCause::Preempted, &calibration), 1_000_000);
        assert_eq!((run.notes.len(), run.valid), (notes, valid), "{:?}", run.notes);
    }
}

// --- real stalls: child processes that run this test binary, selected by this variable -------------------------------

const ROLE: &str = "TICKPATH_TEST_ROLE";

/// Spins until its input ends, then prints its gaps: a `reader` polls, any other role paces like a sender.
#[test]
fn spinner() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let clock = HostClock::get().expect("a clock");
    let cpu = tickpath_clock::cpus()[0];
    let ended = std::thread::spawn(|| std::io::stdin().lines().count());
    pin_to_cpu(cpu).expect("the first CPU is there");
    let mut gaps = GapDetector::new(clock);
    let mut pacer = Pacer::new(clock, Wait::Busy);
    let mut looks = || match role.as_str() {
        "reader" => (0..100).for_each(|_| gaps.empty_turn()),
        _ => _ = pacer.until(clock.ticks() + clock.calibration().ticks_of_ns(50_000)),
    };
    // The first turn starts the record of gaps.
    looks();
    println!("\nspins");
    while !ended.is_finished() {
        looks();
    }
    looks();
    for gap in [gaps.into_gaps(), pacer.into_gaps()].concat() {
        println!("gap {} {} {:?}", gap.from, gap.to, gap.cause);
    }
}

struct Spinner {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Spinner {
    fn start(role: &str) -> Self {
        // Child processes inherit the blocked signal, so they can detect stops.
        track_stops();
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "attribution::spinner", "--nocapture"]).env(ROLE, role);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let mut spinner = Self { process, output };
        spinner.until("spins");
        spinner
    }

    /// Returns the lines that the child prints before a line with this text.
    fn until(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("it speaks") > 0, "it ended before it said '{last}'");
            if line.contains(last) {
                return lines;
            }
            lines.push(line.trim().to_owned());
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.process.id().to_string()]).status();
        assert!(sent.expect("there is a kill").success());
    }

    /// Waits until the kernel shows the process in this state.
    fn is(&self, state: char) {
        let stat = format!("/proc/{}/stat", self.process.id());
        loop {
            let text = std::fs::read_to_string(&stat).expect("it is there");
            if text.rsplit(") ").next().is_some_and(|rest| rest.starts_with(state)) {
                return;
            }
            sleep_ns(1_000_000);
        }
    }

    /// Returns how long the threads of the process have waited for a CPU, in nanoseconds.
    fn waited_ns(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("it is there");
        let waited = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        tasks.flatten().filter_map(waited).sum()
    }

    /// Ends the child and returns its gaps, longest first.
    fn gaps(mut self) -> Vec<SchedulingGap> {
        drop(self.process.stdin.take());
        let lines = self.until("test result");
        self.process.wait().expect("it ends");
        let parse = |line: &String| {
            let mut words = line.strip_prefix("gap ")?.split(' ');
            let [from, to] = [words.next()?, words.next()?].map(|word| word.parse().expect("ticks"));
            let cause =
                GapCause::ALL.into_iter().find(|cause| format!("{cause:?}") == words.clone().next().unwrap_or(""));
            Some(gap(from, to, cause?))
        };
        let mut gaps: Vec<SchedulingGap> = lines.iter().filter_map(parse).collect();
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.to - gap.from));
        gaps
    }
}

#[test]
fn a_stop_of_the_run_differs_from_a_stop_of_one_process() {
    let clock = HostClock::get().expect("a clock");
    // Long compared with other preemption on a busy machine: the test is about the cause, and the length identifies the
    // gap.
    const STOP_NS: u64 = 300_000_000;
    let stop = |stopped: &[&Spinner]| {
        stopped.iter().for_each(|spinner| spinner.signal("-STOP"));
        stopped.iter().for_each(|spinner| spinner.is('T'));
        let from = clock.ticks();
        sleep_ns(STOP_NS);
        let to = clock.ticks();
        stopped.iter().for_each(|spinner| spinner.signal("-CONT"));
        (from, to)
    };
    let [reader, sender] = ["reader", "sender"].map(Spinner::start);
    let both = stop(&[&reader, &sender]);
    let alone = stop(&[&reader]);
    let (reader, sender) = (reader.gaps(), sender.gaps());
    let counted = attribute_common_stops(&reader, &[&sender]);
    let sample = |gaps: &[SchedulingGap], (from, to)| left(&[(from, to)], gaps);
    assert_eq!(sample(&counted, both), Some(0), "all were stalled: by the host\n{counted:?}");
    assert_eq!(sample(&counted, alone), Some(1), "one was stalled: by anything\n{counted:?}");
    let of = |cause| stalled_ns(&counted, cause, clock.calibration());
    assert!(of(GapCause::Stopped) >= STOP_NS, "it is told as a stop\n{counted:?}");
}

#[test]
fn a_neighbour_on_the_cpu_is_not_the_host() {
    let hog = Spinner::start("sender");
    let victim = Spinner::start("reader");
    let clock = HostClock::get().expect("a clock");
    // Waits during the start are in no gap.
    let before_ns = victim.waited_ns();
    while victim.waited_ns() < before_ns + 100_000_000 {
        sleep_ns(1_000_000);
    }
    let [victim, _] = [victim, hog].map(Spinner::gaps);
    let [preempted, host] =
        [GapCause::Preempted, GapCause::Host].map(|cause| stalled_ns(&victim, cause, clock.calibration()));
    assert!(
        preempted > host,
        "{preempted} ns were the neighbour's, {host} ns the host's: {:?}",
        &victim[..victim.len().min(9)]
    );
}

#[test]
fn the_cpu_wait_of_a_process_is_readable_from_outside() {
    let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("there is a shell");
    // A process inherits the CPU of the thread that starts it.
    let both = std::thread::spawn(move || {
        pin_to_cpu(tickpath_clock::cpus()[0]).expect("the first CPU is there");
        [spin(), spin()]
    });
    let mut both = both.join().expect("they start");
    while memory::waited_ns(both[0].id()) < 10_000_000 {
        sleep_ns(1_000_000);
    }
    for process in &mut both {
        process.kill().expect("it lives");
        process.wait().expect("it ends");
    }
    assert_eq!(memory::waited_ns(both[0].id()), 0, "it is gone");
}

//! Each command with an output that cannot be written: a pipe that its reader has closed, and a disk that is full.

use std::fs::{self, OpenOptions};
use std::io::pipe;
use std::process::{Command, Stdio};

use crate::desk::Desk;
use crate::program::{Ran, tickpath, tickpath_into};

/// A call of a command, with its exit codes if its output can be written.
struct Call {
    line: &'static str,
    codes: &'static [i32],
    /// Set if it prints on standard output.
    prints: bool,
}

const fn prints(line: &'static str, codes: &'static [i32]) -> Call {
    Call { line, codes, prints: true }
}

/// Makes a call that prints on standard error only.
const fn refuses(line: &'static str, codes: &'static [i32]) -> Call {
    Call { line, codes, prints: false }
}

/// At least one call of each command; @ stands for the folder of a desk that trades, # for the round.
const CALLS: &[Call] = &[
    prints("order new BTCUSDT buy 1 60000 --session 2 --id #1 --config @/oms.toml", &[0]),
    prints("order replace #1 2 60001 --session 2 --id #2 --config @/oms.toml", &[0]),
    prints("orders --config @/oms.toml", &[0]),
    prints("orders @/journal", &[0]),
    prints("orders --foreign --config @/oms.toml", &[0]),
    prints("top --once --config @/oms.toml", &[0]),
    prints("order status #1 --session 2 --config @/oms.toml", &[0]),
    prints("order cancel #1 --session 2 --id #3 --config @/oms.toml", &[0]),
    prints("order mass-cancel --session 2 --id #4 --config @/oms.toml", &[0]),
    prints("order new BTCUSDT buy 0 1 --session 2 --id #5 --config @/oms.toml", &[1]),
    refuses("drop-copy --config @/oms.toml", &[2]),
    prints("oms status --user admin --config @/oms.toml", &[0]),
    prints("oms kill account 2 --config @/oms.toml", &[0]),
    prints("oms unkill account 2 --config @/oms.toml", &[0]),
    prints("oms mass-cancel firm --config @/oms.toml", &[0]),
    refuses("oms resolve 1.1 canceled --filled 0 --reason anna --config @/oms.toml", &[1]),
    refuses("oms enter fill 1.1 1 1 --exec-id 4 --reason anna --config @/oms.toml", &[1]),
    refuses(
        "oms enter order BTCUSDT buy 1 60000 --venue-order-id 9 --account 77 --session 2 --reason anna --config @/oms.toml",
        &[1],
    ),
    prints("oms enter position 1 BTCUSDT 1 60000 --adjust --reason anna --config @/oms.toml", &[0]),
    prints("oms reconcile SIM --reason anna --config @/oms.toml", &[0, 1]),
    prints("oms reload --config @/oms.toml", &[0]),
    prints("oms --check --config @/oms.toml", &[0]),
    prints("oms init --folder @/oms-#", &[0]),
    prints("oms user add --accounts 1 --password-file @/trader.password --config @/oms.toml user-#", &[0]),
    prints("oms user passwd --password-file @/trader.password --config @/oms.toml user-#", &[0]),
    prints("oms user disable --config @/oms.toml user-#", &[0]),
    prints("oms user enable --config @/oms.toml user-#", &[0]),
    prints("oms user list --config @/oms.toml", &[0]),
    prints("exchange --check --config @/exchange.toml", &[0]),
    prints("exchange init --folder @/exchange-#", &[0]),
    prints("exchange day-end --config @/exchange.toml", &[0]),
    refuses("exchange --as okx --keys @/none.toml", &[2]),
    refuses("venue check okx --key @/none.toml", &[2]),
    refuses("feed okx --instruments BTC-USDT --to shm:// t --streams candles", &[2]),
    refuses("instruments fetch okx --from @/none.json --to @/instruments.csv", &[2]),
    prints("blotter --config @/oms.toml", &[0]),
    prints("blotter --config @/oms.toml --json", &[0]),
    prints("log ls", &[0]),
    prints("log ls @/journal", &[0]),
    prints("log cat @/journal", &[0]),
    prints("log cat @/journal --json --count 1", &[0]),
    prints("log verify @/journal", &[0]),
    prints("log snapshot @/journal", &[0]),
    refuses("log analyse @/no-journal", &[1]),
    refuses("log rm @/journal", &[1]),
    refuses("log record shm:// t x --duration 1h", &[2]),
    refuses("log replay x shm:// t --max-age 10m", &[2]),
    refuses("log import @/none.csv @/imported", &[2]),
    refuses("log export @/journal --to @/orders.txt", &[2]),
    refuses("log bridge shm:// redis://h:1?streams --topic t --max-age abc", &[2]),
    prints("report @/results/host.json", &[0]),
    prints("history @/results", &[0]),
    refuses("compare a b -- fly", &[2]),
    refuses("check white", &[2]),
    refuses("explain http://x", &[2]),
    refuses("demo --ticks @/none", &[2]),
    prints("doctor --script", &[0]),
    prints("completions bash", &[0]),
    prints("man @/man", &[0]),
    refuses("completions cmd", &[2]),
    refuses("man @/oms.toml", &[1]),
    // A busy host makes the run invalid, but its result is printed.
    prints("bench host --duration 0.1 --quiet", &[0, 3]),
    refuses("bench pubsub --size 0", &[2]),
    refuses("bench queue --size 8", &[2]),
    refuses("bench pipeline --depth 0", &[2]),
    refuses("bench clients --client java", &[2]),
    refuses("bench path --speed 0", &[2]),
    refuses("bench orders --count 0", &[2]),
    prints("--version", &[0]),
    refuses("fly", &[2]),
];

/// The end of a day, which is called once.
const DAY_END: Call = prints("oms day-end --config @/oms.toml", &[0]);

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("a system with /dev").into()
}

fn closed() -> Stdio {
    let (reader, writer) = pipe().expect("there are descriptors");
    drop(reader);
    writer.into()
}

fn line(desk: &Desk, call: &Call, round: &str) -> String {
    desk.line(call.line).replace('#', round)
}

fn call(line: &str, out: Stdio, err: Stdio) -> Ran {
    let ran = tickpath_into(&line.split(' ').collect::<Vec<_>>(), out, err);
    assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
    ran
}

/// Returns the words of every command without subcommands, from the help of each.
fn commands() -> Vec<String> {
    let (mut left, mut found) = (vec![String::new()], Vec::new());
    while let Some(command) = left.pop() {
        let help = tickpath(format!("{command} --help").trim_start()).out;
        let rows = help.lines().skip_while(|row| *row != "Commands:").skip(1);
        let rows = rows.take_while(|row| row.is_empty() || row.starts_with(' '));
        let names = rows.filter_map(|row| row.strip_prefix("  ").filter(|row| !row.starts_with(' ')));
        let names = names.filter_map(|row| row.split(' ').next()).filter(|name| *name != "help");
        let inner: Vec<String> = names.map(|name| format!("{command} {name}").trim_start().to_owned()).collect();
        if inner.is_empty() {
            found.push(command);
        }
        left.extend(inner);
    }
    found
}

#[test]
fn each_command_is_called_with_an_unwritable_output() {
    let called = |command: &String| {
        let mut lines = CALLS.iter().chain([&DAY_END]).map(|call| call.line);
        lines.any(|line| {
            line.strip_prefix(command.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    let commands = commands();
    assert!(commands.len() > 30 && commands.contains(&"oms user add".to_owned()), "{commands:?}");
    let missing: Vec<&String> = commands.iter().filter(|command| !called(command)).collect();
    assert!(missing.is_empty(), "CALLS has no call of {missing:?}");
}

#[test]
fn each_help_text_ends_quietly_or_with_an_error() {
    for command in commands() {
        let line = format!("{command} --help");
        let ran = call(&line, closed(), Stdio::piped());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
        let ran = call(&line, full(), Stdio::piped());
        let is_told = ran.err.contains("standard output cannot be written");
        assert!(ran.code == Some(1) && is_told, "{line}: {:?} {}", ran.code, ran.err);
    }
}

/// A file-size limit sends a signal that ends a process unless it is handled.
#[test]
fn a_file_size_limit_ends_the_output_with_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = fs::File::create(folder.path().join("out")).expect("the folder is ours");
    let binary = env!("CARGO_BIN_EXE_tickpath");
    let mut command = Command::new("prlimit");
    command.args(["--fsize=100", binary, "--help"]).stdout(out).stderr(Stdio::piped());
    let ran = command.output().expect("there is prlimit; install it with: apt-get install util-linux");
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.code() == Some(1) && err.contains("standard output cannot be written"),
        "{:?} {err}",
        ran.status
    );
}

#[test]
fn a_command_with_a_failed_output_never_panics() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    fs::create_dir(desk.path().join("results")).expect("the folder is ours");
    let ran = desk.tickpath("bench host --duration 0.1 --quiet --json @/results/host.json");
    assert!([Some(0), Some(3)].contains(&ran.code), "{}", ran.err);
    let calls = || CALLS.iter().chain([&DAY_END]);
    for one in calls() {
        let line = line(&desk, one, "1");
        let ran = call(&line, closed(), Stdio::piped());
        assert!(ran.code.is_some_and(|code| one.codes.contains(&code)), "{line}: {:?} {}", ran.code, ran.err);
        assert!(!one.prints || !ran.err.contains("cannot be written"), "{line}: {}", ran.err);
    }
    for one in calls() {
        let line = line(&desk, one, "2");
        let ran = call(&line, full(), Stdio::piped());
        let is_told = ran.err.contains("standard output cannot be written");
        match one.prints {
            // A second end of the day may be refused.
            true if one.line == DAY_END.line => assert_eq!(ran.code, Some(1), "{line}: {}", ran.err),
            true => assert!(ran.code == Some(1) && is_told, "{line}: {:?} {}", ran.code, ran.err),
            false => assert!(ran.code.is_some_and(|code| one.codes.contains(&code)), "{line}: {:?}", ran.code),
        }
    }
    for (round, err) in [("3", full as fn() -> Stdio), ("4", closed as fn() -> Stdio)] {
        for one in CALLS {
            let line = line(&desk, one, round);
            let ran = call(&line, Stdio::piped(), err());
            assert!(ran.code.is_some_and(|code| one.codes.contains(&code)), "{line}: {:?} {}", ran.code, ran.out);
            assert_eq!(ran.out.is_empty(), !one.prints, "{line}: {}", ran.out);
        }
    }
}

#[test]
fn an_order_in_flight_is_awaited_though_nothing_can_be_printed() {
    let desk = Desk::new();
    let exchange = desk.exchange();
    let _oms = desk.oms();
    exchange.await_words("serving the OMS");
    let order = desk.line("order new BTCUSDT buy 1 60000 --session 2 --id 7 --config @/oms.toml");
    assert_eq!(call(&order, full(), Stdio::piped()).code, Some(1));
    // The order's answer was awaited: it works, and is not in flight.
    let table = desk.tickpath("orders --config @/oms.toml").out;
    assert!(table.contains("1 open (0 waiting, 0 in flight, 0 unknown)"), "{table}");
    assert_eq!(table.lines().filter(|row| row.trim_end().ends_with(" new")).count(), 1, "{table}");
}

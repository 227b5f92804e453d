//! Files of earlier versions, which each later version reads: a recording, an order journal with its snapshot, a result.
//! A session of version 1 is in `oms-server/tests/it/versions.rs`.
//!
//! `data/VERSION.tar.gz` holds the files of a version. `TICKPATH_BLESS=1 cargo test -p tickpath-cli --test it formats`
//! writes those of the present version if there are none, and never replaces any.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::desk::{ASK, Desk};
use crate::logs::until;
use crate::program::tickpath;

/// Trades in the recording.
const TRADES: &str = "utc_ns,symbol,price,quantity,aggressor,trade_id
1723075200000000000,BTCUSDT,55132.6,0.25,buy,1
1723075200000000001,BTCUSDT,55132.5,1.5,sell,2
1723075260000000000,ETHUSDT,2343.01,10,buy,3
";

/// The archives of all versions.
fn archives() -> Vec<PathBuf> {
    let listed = std::fs::read_dir(data()).expect("there is the folder");
    let paths = listed.map(|entry| entry.expect("it can be listed").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "gz")).collect()
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data")
}

fn run(program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).status().expect("tar is installed");
    assert!(status.success(), "{program} {args:?}");
}

/// Writes a recording, a result, and the desk of a day with a fill, a cancel and two open orders, one of which came
/// after the snapshot.
fn write_files(archive: &Path) {
    let desk = Desk::new();
    let good = |line: &str| {
        let ran = desk.tickpath(line);
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
    };
    std::fs::write(desk.path().join("trades.csv"), TRADES).expect("the folder is writable");
    good("log import @/trades.csv @/recording");
    // An invalid result is a result too.
    desk.tickpath("bench host --duration 0.2 --quiet --json @/result.json");
    let exchange = desk.exchange();
    let oms = desk.oms();
    exchange.await_words("serving the OMS");
    good(&desk.line(&format!("order new BTCUSDT buy 1 {ASK} --id 1 --config @/oms.toml")));
    good("order new BTCUSDT buy 2 60000 --tif gtc --id 2 --config @/oms.toml");
    good("order new BTCUSDT buy 3 60000 --id 3 --config @/oms.toml");
    good("order cancel 3 --id 4 --config @/oms.toml");
    until(|| desk.tickpath("orders --config @/oms.toml").out.contains("2 done"), || "two orders done".to_owned());
    assert_eq!(oms.interrupt().code, Some(0));
    good("log snapshot @/journal");
    let oms = desk.oms();
    good("order new BTCUSDT sell 4 62000 --tif gtc --id 5 --config @/oms.toml");
    assert_eq!(oms.interrupt().code, Some(0));
    let (folder, archive) = (desk.path().display().to_string(), archive.display().to_string());
    run("tar", &["--sparse", "--exclude=*.sock", "-czf", &archive, "-C", &folder, "."]);
}

/// The files of a version, unpacked.
fn unpack(archive: &Path) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    run("tar", &["-xzf", &archive.display().to_string(), "-C", &folder.path().display().to_string()]);
    folder
}

/// Reads the files of a version with the commands of this one.
fn reads(archive: &Path) {
    let folder = unpack(archive);
    let call = |line: &str| {
        let line = line.replace('@', &folder.path().display().to_string());
        let ran = tickpath(&line);
        assert_eq!(ran.code, Some(0), "{}: {line}: {}", archive.display(), ran.err);
        ran.out
    };
    let trades = call("log cat @/recording --json");
    assert_eq!(trades.lines().count(), 3, "{trades}");
    assert!(trades.contains("1723075260000000000"), "{trades}");
    call("log verify @/recording");
    let verified = call("log verify @/journal");
    assert!(verified.contains("snapshot"), "{verified}");
    let open = call("orders @/journal");
    assert!(open.contains("2 open") && open.contains("2 done"), "{open}");
    assert!(call("blotter @/journal --json").contains("61800.1"), "the fill");
    assert!(call("report @/result.json").contains("host"), "the workload");
}

#[test]
fn files_of_each_released_version_are_read() {
    let present = data().join(format!("{}.tar.gz", env!("CARGO_PKG_VERSION")));
    if env::var_os("TICKPATH_BLESS").is_some() && !present.exists() {
        write_files(&present);
    }
    let archives = archives();
    assert!(
        archives.contains(&present),
        "no files of this version: TICKPATH_BLESS=1 cargo test -p tickpath-cli formats"
    );
    for archive in &archives {
        reads(archive);
    }
}

/// An OMS of this version takes over the journal of an earlier one: its open orders can be canceled, and its ids stay
/// used.
#[test]
fn an_oms_starts_on_the_journal_of_each_released_version() {
    for archive in archives() {
        let folder = unpack(&archive);
        let desk = Desk::unpacked(folder);
        let exchange = desk.exchange();
        let _oms = desk.oms();
        exchange.await_words("serving the OMS");
        let open = desk.tickpath("orders --config @/oms.toml").out;
        assert!(open.contains("60000") && open.contains("62000"), "{open}");
        let again = desk.order("new BTCUSDT buy 1 60000 --id 2");
        assert_eq!(again.code, Some(1), "{}{}", again.out, again.err);
    }
}

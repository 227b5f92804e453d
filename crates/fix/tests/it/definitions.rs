//! QuickFIX's session definitions, played in order against a session with the echo application. Fields must have the
//! expected order and values. No sockets, no threads: time passes only while a step waits.
//!
//! The definitions are those of Debian's source package `quickfix`, which `scripts/quickfix-definitions` fetches.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tickpath_fix::{BeginString, Dictionary};

use echo_session::{EchoSession, echo_config};
use player::Player;

#[path = "../../examples/echo/application.rs"]
mod application;
mod comparison;
#[path = "../../examples/echo/echo_session.rs"]
mod echo_session;
mod player;
mod script;

/// Variable that names the folder of the definitions, `test/definitions/server` of QuickFIX's sources.
const FOLDER: &str = "TICKPATH_QUICKFIX_DEFINITIONS";
/// CompID of the definitions' side.
const PEER: &str = "TW";
/// 2026-11-30 09:00:00 UTC.
const BEGIN_NS: u64 = 1_796_029_200_000_000_000;

#[test]
fn definitions_of_fix_4_2_pass() {
    play_all("fix42", 58, dictionary("FIX42.xml"));
}

#[test]
fn definitions_of_fix_4_4_pass() {
    play_all("fix44", 59, dictionary("FIX44.xml"));
}

#[test]
fn definitions_of_fix_5_0_sp2_pass() {
    let dictionary = Dictionary::with_transport(&dictionary("FIXT11.xml"), &dictionary("FIX50SP2.xml"));
    play_all("fix50sp2", 60, dictionary);
}

/// Plays the definitions of a version one after the other, with one session.
#[track_caller]
fn play_all(version: &str, least: usize, dictionary: Dictionary) {
    let mut files = files_of(&folder().join(version));
    files.sort();
    assert!(files.len() >= least, "{version} has {} definitions, and {least} are known", files.len());
    let begin_string = BeginString::parse(dictionary.begin_string()).expect("the dictionary has a known version");
    let echo = EchoSession::new(echo_config(begin_string, PEER), Arc::new(dictionary), Box::new(|_: &str| {}));
    let mut player = Player::new(echo, BEGIN_NS);
    let failures: Vec<String> = files.iter().filter_map(|file| play(&mut player, file).err()).collect();
    let count = (failures.len(), files.len());
    assert!(failures.is_empty(), "{} of {} definitions fail:\n{}", count.0, count.1, failures.join("\n"));
}

fn play(player: &mut Player, file: &Path) -> Result<(), String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let steps = script::read_steps(&read(file)).map_err(|why| format!("{name}: {why}"))?;
    player.play(&steps).map_err(|why| format!("{name}, {why}"))
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}; set {FOLDER} anew", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "def")).collect()
}

fn folder() -> PathBuf {
    let remedy = "fetch the definitions with: export TICKPATH_QUICKFIX_DEFINITIONS=$(scripts/quickfix-definitions)";
    PathBuf::from(env::var_os(FOLDER).unwrap_or_else(|| panic!("{FOLDER} is not set; {remedy}")))
}

/// Reads a dictionary of QuickFIX, from the sources that the definitions are from.
fn dictionary(name: &str) -> Dictionary {
    let file = folder().join("../../../spec").join(name);
    Dictionary::parse(&read(&file), name).unwrap_or_else(|e| panic!("{e}"))
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

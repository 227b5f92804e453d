//! Passwords and secrets do not stay in memory after their owners are dropped.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tickpath_oms_protocol::{ClientLogon, Secret};
use zeroize::Zeroize;

/// Returns random bytes, inverted, so that the test itself does not hold them.
fn inverted(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    // The inverse of each byte is a character that is valid in a password.
    bytes.iter().map(|byte| !(b'a' + byte % 26)).collect()
}

fn plain(inverted: &[u8]) -> Vec<u8> {
    inverted.iter().map(|byte| !byte).collect()
}

/// Returns whether the heap or another thread's memory holds these bytes, which are given inverted.
fn is_in_memory(inverted: &[u8]) -> bool {
    const PIECE: usize = 1 << 16;
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let memory = File::open("/proc/self/mem").expect("it is our own");
    let mut piece = vec![0; PIECE + inverted.len()];
    let holds = |bytes: &[u8]| {
        bytes.windows(inverted.len()).any(|window| window.iter().zip(inverted).all(|(byte, other)| *byte == !other))
    };
    let found = maps.lines().any(|line| {
        let mut words = line.split_whitespace();
        let (range, rights, name) = (words.next().expect("a range"), words.next().expect("rights"), words.nth(3));
        if !rights.starts_with("rw") || name.is_some_and(|name| name != "[heap]") {
            return false;
        }
        let (from, to) = range.split_once('-').expect("two ends");
        let end = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let (mut at, to) = (end(from), end(to));
        while at < to {
            let length = piece.len().min((to - at) as usize);
            match memory.read_at(&mut piece[..length], at) {
                Ok(read) if read > 0 && holds(&piece[..read]) => return true,
                _ => at += PIECE as u64,
            }
        }
        false
    });
    piece.zeroize();
    found
}

#[test]
fn a_password_is_overwritten_after_its_logon() {
    let kept = inverted(1_000);
    let mut password = String::from_utf8(plain(&kept)).expect("letters");
    let (logon, _) = ClientLogon::new("anna", &password, None).expect("a good name");
    password.zeroize();
    // Freeing memory overwrites its first bytes.
    assert!(is_in_memory(&kept[500..600]), "the logon has it, and this test can find it");
    drop(logon);
    assert!(!is_in_memory(&kept[500..600]), "it lies in memory behind the logon");
}

#[test]
fn a_dropped_secret_is_overwritten() {
    let kept = inverted(64);
    let mut salt = plain(&kept);
    let keys = STANDARD.encode([7; 32]);
    let text = format!("SCRAM-SHA-256$4096:{}${keys}:{keys}", STANDARD.encode(&salt));
    salt.zeroize();
    let secret: Secret = text.parse().expect("it is sound");
    let copy = secret.clone();
    assert!(is_in_memory(&kept[32..]), "the secret has it, and this test can find it");
    drop((secret, copy));
    assert!(!is_in_memory(&kept[32..]), "it lies in memory behind the secret");
}

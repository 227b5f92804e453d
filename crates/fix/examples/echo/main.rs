//! An acceptor of FIX that echoes orders: the session of one peer over TCP, on one thread.
//!
//! ```text
//! cargo run --release -p tickpath-fix --example echo -- --listen 127.0.0.1:9880 --version FIX.4.4 --peer TW44 \
//!     --dictionary target/quickfix/source/spec/FIX44.xml
//! ```
//! Its own CompID is ISLD. FIX.5.0SP2 needs `--transport-dictionary FIXT11.xml` too. With `--faults full` rejects and
//! logouts about a wrong header have the details of QuickFIX/J.

use std::error::Error;
use std::sync::Arc;

use tickpath_clock::{sleep_ns, utc_ns};
use tickpath_fix::{BeginString, Dictionary};

use arguments::Arguments;
use echo_session::{EchoSession, echo_config};
use server::Server;

mod application;
mod arguments;
mod echo_session;
mod server;

/// Pause after a turn without work.
const PAUSE_NS: u64 = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let begin_string = arguments.begin_string();
    let dictionary = dictionary(&arguments, begin_string)?;
    let mut config = echo_config(begin_string, &arguments.peer);
    config.fault_detail = arguments.fault_detail;
    let echo = EchoSession::new(config, Arc::new(dictionary), Box::new(|text: &str| eprintln!("echo: {text}")));
    let mut server = Server::listen(&arguments.listen, echo)?;
    eprintln!("echo: {} listens at {}", begin_string.text(), server.address()?);
    loop {
        if !server.turn(utc_ns())? {
            sleep_ns(PAUSE_NS);
        }
    }
}

fn dictionary(arguments: &Arguments, begin_string: BeginString) -> Result<Dictionary, Box<dyn Error>> {
    let read = |file: &String| -> Result<Dictionary, Box<dyn Error>> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
        Ok(Dictionary::parse(&text, file)?)
    };
    let own = read(&arguments.dictionary)?;
    let dictionary = match &arguments.transport_dictionary {
        Some(file) => Dictionary::with_transport(&read(file)?, &own),
        None => own,
    };
    if dictionary.begin_string() != begin_string.text() {
        let (found, wanted) = (dictionary.begin_string(), begin_string.text());
        return Err(format!("the dictionary is one of {found} and not of {wanted}; name another file").into());
    }
    Ok(dictionary)
}

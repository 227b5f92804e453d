//! The feed of Binance through its public interface: the parser, the list of instruments, and the feed against a
//! scripted exchange.

mod agreement;
mod api_key;
mod conformance;
mod driver;
mod exchange;
mod feed;
mod frames;
mod hostile;
mod instruments;
mod parser;
mod recording;
mod sbe;
mod snapshots;

//! The line to Binance through its public interface, against a scripted exchange on loopback.

mod answers;
mod conformance;
mod connect;
mod credentials;
mod driver;
mod events;
mod exchange;
mod frames;
mod limits;
mod property;
mod replace;
mod signatures;
mod status;
mod wire;

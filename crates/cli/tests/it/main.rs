//! What the binary does, and the rules of the house.

mod bench_orders;
mod broken;
mod brokers;
mod browser;
mod check;
mod chromium;
mod conditional;
mod copies;
mod desk;
mod doubled;
mod exchange;
mod history;
mod imports;
mod interrupt;
mod logs;
mod oms;
mod pace;
mod page;
mod phone;
mod program;
mod reports;
mod server;
mod tidy;
mod unit;
mod usage;
mod words;

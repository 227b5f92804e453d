//! Files in each format are read and written.

mod binance;
mod damaged;
mod databento;
mod exports;
mod files;
mod npz;
mod tables;
mod tardis;

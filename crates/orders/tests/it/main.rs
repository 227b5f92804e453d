//! What the core promises, seen from outside.

mod cancels;
mod converge;
mod credit;
mod day;
mod dice;
mod doubt;
mod draw;
mod fills;
mod honest;
mod hostile;
mod identity;
mod index;
mod limits;
mod model;
mod naive;
mod page;
mod record;
mod replay;
mod rights;
mod scene;
mod snapshot;
mod states;
mod upgrade;
mod venue;
mod wait;

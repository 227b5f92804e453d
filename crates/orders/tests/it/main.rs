//! What the core promises, seen from outside.

mod converge;
mod dice;
mod doubt;
mod draw;
mod hostile;
mod identity;
mod index;
mod limits;
mod model;
mod naive;
mod record;
mod replay;
mod scene;
mod states;

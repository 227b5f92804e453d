//! What a user's program may rely on, against an OMS that says what a test wants it to say.

mod hostile;
mod logon;
mod losses;
mod oms;
mod talk;

//! What every workload measures with, through its public interface.

mod around;
mod attribution;
mod others;
mod proxy;

//! What every workload measures with, through its public interface.

mod around;
mod arrivals;
mod attribution;
mod leftovers;
mod others;
mod proxy;
mod rules;

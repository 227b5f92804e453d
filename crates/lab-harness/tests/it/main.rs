//! Integration tests of the parts that every workload measures with, through their public interface.

mod arrivals;
mod attribution;
mod busy_processes;
mod leftovers;
mod proxy;
mod rules;
mod stability;

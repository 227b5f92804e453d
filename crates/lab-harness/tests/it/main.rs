//! Integration tests of the parts that every workload measures with, through their public interface.

mod around;
mod arrivals;
mod attribution;
mod leftovers;
mod others;
mod proxy;
mod rules;

//! What every workload measures with, through its public interface.

mod attribution;
mod proxy;

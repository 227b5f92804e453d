//! The workloads on planted facts, whose results are known beforehand.

mod analyse;

//! The workloads on planted facts: what their results say of them is known beforehand.

mod analyse;

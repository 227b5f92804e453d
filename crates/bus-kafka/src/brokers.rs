//! The one call of the client library that has no checked form.
#![allow(unsafe_code)]

use std::ffi::CString;

use rdkafka::bindings::rd_kafka_brokers_add;
use rdkafka::client::{Client, ClientContext};

/// Tells a client again where the cluster is: hosts and ports, with commas in between. One that was told of no server, as
/// a cluster says that has taken all of them for dead for a moment, forgets those that it knew, and connects to none any
/// more (librdkafka #5301). One that knows these already loses nothing.
pub(crate) fn add<C: ClientContext>(client: &Client<C>, hosts: &str) {
    let hosts = CString::new(hosts).expect("a host has no zero byte");
    // SAFETY: the handle is the client's own and outlives the call, which any thread may make; the text is copied.
    unsafe { rd_kafka_brokers_add(client.native_ptr(), hosts.as_ptr()) };
}

//! Calls of the client library that have no safe form, or only one that panics.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

use rdkafka::bindings::{rd_kafka_brokers_add, rd_kafka_header_get_all, rd_kafka_message_headers, rd_kafka_resp_err_t};
use rdkafka::client::{Client, ClientContext};
use rdkafka::message::BorrowedMessage;

/// Adds the cluster's hosts and ports, separated by commas, to a client again. A client forgets its servers and never
/// reconnects if a cluster that takes all of them for dead for a moment returns an empty list (librdkafka #5301). Known
/// servers are unaffected.
pub(crate) fn add_brokers<C: ClientContext>(client: &Client<C>, hosts: &str) {
    let hosts = CString::new(hosts).expect("a host has no zero byte");
    // SAFETY: the handle belongs to the client and outlives the call, which any thread may make; the text is copied.
    unsafe { rd_kafka_brokers_add(client.native_ptr(), hosts.as_ptr()) };
}

/// Passes the name and the value of each header of a message to `each`. The library's own iterator panics at a name
/// that is not UTF-8, which any program may send.
pub(crate) fn headers(message: &BorrowedMessage<'_>, mut each: impl FnMut(&[u8], Option<&[u8]>)) {
    const NO_ERROR: rd_kafka_resp_err_t = rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;
    let mut headers = null_mut();
    // SAFETY: the message is valid while it is borrowed, and owns its headers.
    if unsafe { rd_kafka_message_headers(message.ptr(), &raw mut headers) } != NO_ERROR {
        return;
    }
    for index in 0.. {
        let (mut name, mut value, mut bytes) = (null(), null(), 0);
        // SAFETY: the message owns the headers, and an index behind the last one returns an error.
        let found = unsafe { rd_kafka_header_get_all(headers, index, &raw mut name, &raw mut value, &raw mut bytes) };
        if found != NO_ERROR {
            break;
        }
        // SAFETY: the name ends with a zero, a value that is not null has `bytes` bytes, and both live as long as the
        // message.
        let (name, value) = unsafe {
            let value = (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), bytes));
            (CStr::from_ptr(name), value)
        };
        each(name.to_bytes(), value);
    }
}

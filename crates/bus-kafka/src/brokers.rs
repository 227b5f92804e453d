//! Calls of the client library that have no checked form, or one that panics.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

use rdkafka::bindings::{rd_kafka_brokers_add, rd_kafka_header_get_all, rd_kafka_message_headers, rd_kafka_resp_err_t};
use rdkafka::client::{Client, ClientContext};
use rdkafka::message::BorrowedMessage;

/// Tells a client again where the cluster is: hosts and ports, with commas in between. One that was told of no server, as
/// a cluster says that has taken all of them for dead for a moment, forgets those that it knew, and connects to none any
/// more (librdkafka #5301). One that knows these already loses nothing.
pub(crate) fn add<C: ClientContext>(client: &Client<C>, hosts: &str) {
    let hosts = CString::new(hosts).expect("a host has no zero byte");
    // SAFETY: the handle is the client's own and outlives the call, which any thread may make; the text is copied.
    unsafe { rd_kafka_brokers_add(client.native_ptr(), hosts.as_ptr()) };
}

/// Hands over the name and the value of each header of a message. The library's own iterator panics at a name that is no
/// UTF-8, which any program may send.
pub(crate) fn headers(message: &BorrowedMessage<'_>, mut each: impl FnMut(&[u8], Option<&[u8]>)) {
    const NO_ERROR: rd_kafka_resp_err_t = rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;
    let mut headers = null_mut();
    // SAFETY: the message is valid while it is borrowed, and keeps what it gives.
    if unsafe { rd_kafka_message_headers(message.ptr(), &raw mut headers) } != NO_ERROR {
        return;
    }
    for index in 0.. {
        let (mut name, mut value, mut bytes) = (null(), null(), 0);
        // SAFETY: the headers are the message's, and an index behind the last one gives an error.
        let found = unsafe { rd_kafka_header_get_all(headers, index, &raw mut name, &raw mut value, &raw mut bytes) };
        if found != NO_ERROR {
            break;
        }
        // SAFETY: the name ends with a zero, the value has so many bytes if there is one, and both live as long as the message.
        let (name, value) = unsafe {
            let value = (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), bytes));
            (CStr::from_ptr(name), value)
        };
        each(name.to_bytes(), value);
    }
}

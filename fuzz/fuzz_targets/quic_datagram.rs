//! A stranger's datagrams at an end of a QUIC connection, before its handshake and after it.
//!
//! How the bytes are read stands at `talkpath_kernel::end::fuzzing::quic_datagrams`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| talkpath_kernel::end::fuzzing::quic_datagrams(bytes));

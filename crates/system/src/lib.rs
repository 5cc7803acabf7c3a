//! This machine as the arenas and the commands need it: its clock, its random numbers, its limits, the values
//! of its kernel, and the system calls that no library wraps safely. Linux only.
//!
//! It knows no transport, so that a changed line in a protocol compiles nothing here again, nor the commands,
//! which need the same machine. Flows over sockets and hosts in namespaces are in `talkpath_kernel`.
//!
//! - *run time*: nanoseconds since the run began on this host, by CLOCK_MONOTONIC.
//! - *stamp*: when the kernel took or sent a packet. It is CLOCK_REALTIME, and is turned into run time.
//! - *ancillary data*: what sendmsg(2) and recvmsg(2) carry beside the bytes, such as stamps.
//! - *batch*: datagrams that one system call receives.
//! - *this kernel*: the values of the kernel that runs this process, for `kernel = "this"`.
//!
//! Begin to read with `clock.rs`; `sys.rs` has the system calls, each with the reason why no library makes
//! it.

pub mod ancillary;
pub mod clock;
pub mod descriptors;
pub mod fragments;
pub mod keep_awake;
pub mod ports;
pub mod random;
pub mod sys;
pub mod this_kernel;

//! This machine as the arenas and the commands need it: its clock, its random numbers, its limits, the values
//! of its kernel, and the system calls that no library wraps safely. Linux only.
//!
//! It knows no transport, so that a changed line in a protocol compiles nothing here again, nor the commands,
//! which need the same machine. Flows over sockets and hosts in namespaces are in `talkpath_kernel`.

pub mod ancillary;
pub mod clock;
pub mod descriptors;
pub mod fragments;
pub mod keep_awake;
pub mod ports;
pub mod random;
pub mod sys;
pub mod this_kernel;

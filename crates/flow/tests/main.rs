//! An application on its channel.
//!
//! One program for the whole folder: each further one would be linked by itself.

mod application;
mod shared_connection;

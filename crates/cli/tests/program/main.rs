//! The built program, judged by what a user sees: exit code, standard output, standard error, files.

mod bad_input;
mod harness;
mod live;
mod runs;
mod usage;

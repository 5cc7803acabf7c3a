//! The path against closed forms, and what holds whatever it is given.
//!
//! One program for the whole folder: each further one would be linked by itself.

mod closed_form;
mod properties;

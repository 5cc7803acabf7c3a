//! Scenario files as a user writes them: what they mean, and what is wrong with them.
//!
//! One program for the whole folder: each further one would be linked by itself.

mod changes;
mod cost;
mod examples;
mod files;
mod judging;
mod kernel;
mod limits;
mod loading;
mod mechanisms;
mod mistakes;
mod options;
mod robust;
mod steps;
mod timeline;
mod topology;
mod units;
mod voice;

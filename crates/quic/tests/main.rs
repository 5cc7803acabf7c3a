//! quinn-proto under our configurations, in virtual time over a link in memory.

mod end;
mod engine;
mod lab;
mod repeats;
mod sizes;

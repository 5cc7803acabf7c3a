//! quinn-proto under our configurations, in virtual time over a link in memory; and our ends over it.

mod end;
mod engine;
mod lab;
mod marks;
mod paths;
mod repeats;
mod sizes;

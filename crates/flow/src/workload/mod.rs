//! Workloads as state machines: when each message is due and how large it is.
//!
//! | workload | clock | a message |
//! | --- | --- | --- |
//! | [`Voice`] | the codec's | a frame every `ptime` |
//! | [`Cbr`] | `rate` and `size`, without drift | `size` bytes |
//! | [`Bulk`] | none: waits for room | as large as fits |
//! | file, as [`Bulk`] | none | as large as fits, up to `size` |
//! | [`Burst`] | none within a burst, `gap` between bursts | `size` bytes |
//!
//! Nothing is due at or after the stop that [`AnyWorkload::new`] is given. Left out: what the far end does
//! with a message (echo), which is the application's part.

mod any;
mod bulk;
mod burst;
mod cbr;
mod source;
mod voice;

pub use any::AnyWorkload;
pub use bulk::Bulk;
pub use burst::Burst;
pub use cbr::Cbr;
pub use source::{Awaits, Workload};
pub use voice::Voice;

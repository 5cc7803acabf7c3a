//! What survives a kill: the store, of which runs, studies, monitors and campaigns make all that they keep.

mod error;
pub mod store;

pub use self::error::Error;

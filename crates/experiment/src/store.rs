//! How the files of this program survive a kill. Every file that it keeps is written in one of three ways:
//!
//! ```text
//! whole.rs   a file is written under another name and then renamed, so a file with its final name is whole
//! lines.rs   lines are added to a file, and a line counts once its line feed is there
//! lock.rs    a file is locked by one process at a time
//! ```
//!
//! A loss of power is another matter: only the functions whose documentation says so write through to the
//! disk.

pub mod lines;
pub mod lock;
pub mod whole;

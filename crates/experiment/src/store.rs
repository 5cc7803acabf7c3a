//! What survives a kill, of which all that this program keeps is made: files that are written whole, files of
//! lines, and locks.
//!
//! ```text
//! whole.rs   a file under another name, which is then renamed: a name that is there is whole
//! lines.rs   a file to which lines are added: a line counts once its line feed is there
//! lock.rs    a file that one process at a time holds
//! ```
//!
//! A machine that loses power is another matter: nothing is synced but by what says so.

pub mod lines;
pub mod lock;
pub mod whole;

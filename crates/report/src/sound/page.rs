//! The page of `listen`, which has the sounds alone.

use maud::html;

use super::{Sounds, players};
use crate::html::document;

/// Writes a page of its own for `sounds`. It loads no other file. `talkpath` is the version of the program.
pub fn sound_page(title: &str, sounds: &Sounds, talkpath: &str) -> String {
    document(title, &sounds.about, &players(sounds, |name| html! { h2 { (name) } }), talkpath)
}

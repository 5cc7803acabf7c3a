//! The scenario that `talkpath compare` runs, as text that anybody can keep and change.

use core::fmt::Write as _;

use talkpath_units::Duration;

/// One voice call with echo over each of `transports`, one at a time, on the preset `path`; beside a bulk
/// upload over TCP if `load` is set. The upload begins at some instant of the first second: on a path without
/// chance of its own all repetitions would else be one and the same.
pub fn compare_scenario(path: &str, transports: &[String], load: bool, duration: Duration) -> String {
    let mut text = String::new();
    let list = transports.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let first = transports.first().map_or("udp", String::as_str);
    let beside = if load { " beside an upload" } else { "" };
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "name = \"voice over {path}{beside}\"\nduration = \"{duration}\"\npath = {path:?}\n\n\
         [flow.call]\ntransport = {first:?}\nworkload = {{ kind = \"voice\", codec = \"g711\", echo = true }}\n"
    );
    if load {
        text.push_str("\n[flow.upload]\ntransport = \"tcp\"\nworkload = { kind = \"bulk\" }\n");
        text.push_str("start = { from = \"0 s\", to = \"1 s\" }\n");
    }
    let _ = write!(text, "\n[sweep]\n\"flow.call.transport\" = [{list}]\n");
    text
}

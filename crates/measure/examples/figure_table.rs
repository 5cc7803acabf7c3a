//! Prints the table of figures: `figures markdown` for docs/reference/metrics.md, `figures schema` the whole
//! docs/reference/summary.schema.json, `figures python` the whole python/talkpath/figures.json, `figures
//! words` the whole python/talkpath/_words.py.

use std::process::ExitCode;

use talkpath_measure::figures::page::{described, markdown, python, python_words};

const SCHEMA: &str = include_str!("../../../docs/reference/summary.schema.json");

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("markdown") => print!("{}", markdown()),
        Some("python") => print!("{}", python()),
        Some("words") => print!("{}", python_words()),
        Some("schema") => match serde_json::from_str(SCHEMA) {
            Ok(schema) => println!("{:#}", described(&schema)),
            Err(why) => {
                eprintln!("summary.schema.json: {why}");
                return ExitCode::FAILURE;
            }
        },
        _ => {
            eprintln!("usage: figures markdown|schema|python|words");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

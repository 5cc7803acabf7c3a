//! Finds every mistake of form in a study file: wrong syntax, unknown keys, wrong types.
//!
//! The parser of a whole file stops at its first mistake. Here each entry of the file is read by itself, and
//! so is each check of a claim. All mistakes are found, and the entries without mistakes are still read.

use core::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, ValueDeserializer};

use crate::file::{
    AssumptionEntry, CampaignEntry, CellsEntry, CheckEntry, ClaimEntry, FigureEntry, File, TableEntry,
};
use crate::mistakes::Mistakes;
use crate::wording::reworded;

/// Adds every mistake of form in `text`, and returns the entries without mistakes. Returns `None` if the file
/// is not valid TOML, or if a key outside the entries is wrong.
pub(crate) fn add_mistakes(text: &str, mistakes: &mut Mistakes<'_>) -> Option<File> {
    let (root, syntax_errors) = DeTable::parse_recoverable(text);
    if !syntax_errors.is_empty() {
        for error in &syntax_errors {
            add_error(error, 0..0, mistakes);
        }
        return None;
    }
    let root_span = root.span();
    let mut root = root.into_inner();
    let assumption = read_list::<AssumptionEntry>(&mut root, "assumption", mistakes);
    let cells = read_list::<CellsEntry>(&mut root, "cells", mistakes);
    let campaign = read_list::<CampaignEntry>(&mut root, "campaign", mistakes);
    let figure = read_list::<FigureEntry>(&mut root, "figure", mistakes);
    let table = read_list::<TableEntry>(&mut root, "table", mistakes);
    let claim = read_claims(&mut root, mistakes);
    // What is left has the keys outside the entries, and empty lists of entries.
    match File::deserialize(Deserializer::from(Spanned::new(root_span, root))) {
        Ok(file) => Some(File { assumption, cells, campaign, figure, table, claim, ..file }),
        Err(error) => {
            add_error(&error, 0..0, mistakes);
            None
        }
    }
}

fn read_claims(root: &mut DeTable<'_>, mistakes: &mut Mistakes<'_>) -> Vec<ClaimEntry> {
    let mut claims = Vec::new();
    for claim in take_list(root, "claim") {
        let span = claim.span();
        let DeValue::Table(mut claim) = claim.into_inner() else { continue };
        let check = read_list::<Spanned<CheckEntry>>(&mut claim, "check", mistakes);
        let without_checks = Spanned::new(span, DeValue::Table(claim));
        if let Some(claim) = read_entry::<ClaimEntry>(without_checks, mistakes) {
            claims.push(ClaimEntry { check, ..claim });
        }
    }
    claims
}

/// Reads the entries of the list called `name`, and leaves an empty list in the table.
fn read_list<T: DeserializeOwned>(
    table: &mut DeTable<'_>,
    name: &str,
    mistakes: &mut Mistakes<'_>,
) -> Vec<T> {
    take_list(table, name).into_iter().filter_map(|entry| read_entry::<T>(entry, mistakes)).collect()
}

fn take_list<'i>(table: &mut DeTable<'i>, name: &str) -> Vec<Spanned<DeValue<'i>>> {
    let Some(value) = table.get_mut(name) else { return Vec::new() };
    match value.get_mut() {
        DeValue::Array(list) => core::mem::replace(list, DeArray::new()).into_iter().collect(),
        // The value stays in the table, and whoever reads the table reports that it is not a list.
        _ => Vec::new(),
    }
}

fn read_entry<T: DeserializeOwned>(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes<'_>) -> Option<T> {
    let span = value.span();
    match T::deserialize(ValueDeserializer::from(value)) {
        Ok(entry) => Some(entry),
        Err(error) => {
            add_error(&error, span, mistakes);
            None
        }
    }
}

/// Adds an error of the parser in the words of the scenario language. `entry_span` is used if the error does
/// not say where it is.
fn add_error(error: &toml::de::Error, entry_span: Range<usize>, mistakes: &mut Mistakes<'_>) {
    let span = error.span().unwrap_or(entry_span);
    let mistake = reworded(error.message());
    let key = if mistake.key.is_empty() { mistakes.key_before(span.start) } else { mistake.key };
    mistakes.add_with_help(span, &key, mistake.message, mistake.help);
}

/// Adds each value in `text` that TOML allows but a study cannot use. Numbers that are `inf` or `nan` are
/// neither bounds nor figures. Control characters in names and texts would steer the terminal of whoever
/// reads the study.
pub(crate) fn add_unusable(text: &str, mistakes: &mut Mistakes<'_>) {
    let Ok(root) = DeTable::parse(text) else { return };
    add_unusable_in_table(root.get_ref(), mistakes);
}

fn add_unusable_in_table(table: &DeTable<'_>, mistakes: &mut Mistakes<'_>) {
    for (key, value) in table {
        add_control_character(key.span(), key.get_ref(), mistakes);
        add_unusable_value(value, mistakes);
    }
}

fn add_unusable_value(value: &Spanned<DeValue<'_>>, mistakes: &mut Mistakes<'_>) {
    match value.get_ref() {
        DeValue::Table(table) => add_unusable_in_table(table, mistakes),
        DeValue::Array(list) => list.iter().for_each(|entry| add_unusable_value(entry, mistakes)),
        DeValue::String(text) => add_control_character(value.span(), text, mistakes),
        DeValue::Float(float) => {
            // The parser has removed underscores. A number that is too large for a float is read as `inf`.
            if !float.as_str().parse().is_ok_and(f64::is_finite) {
                let key = mistakes.key_before(value.span().start);
                let message = format!("found {}, expected a finite number", float.as_str());
                mistakes.add(value.span(), &key, message);
            }
        }
        DeValue::Integer(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

/// Adds the first control character in `text`, unless it is a tab or the end of a line. A carriage return
/// without a line feed is refused, because a terminal then overwrites the line.
fn add_control_character(span: Range<usize>, text: &str, mistakes: &mut Mistakes<'_>) {
    let text = text.replace("\r\n", "\n");
    let is_refused = |letter: &char| letter.is_control() && !matches!(letter, '\t' | '\n');
    if let Some(found) = text.chars().find(is_refused) {
        let key = mistakes.key_before(span.start);
        mistakes.add(span, &key, format!("found the control character {found:?}, expected plain text"));
    }
}

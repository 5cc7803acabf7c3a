//! What is wrong with the form of a study file, entry by entry: a reader of the whole file stops at its first
//! mistake.

use core::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, ValueDeserializer};

use crate::file::{
    AssumptionEntry, CampaignEntry, CellsEntry, CheckEntry, ClaimEntry, FigureEntry, File, TableEntry,
};
use crate::place::Mistakes;
use crate::wording::reworded;

/// Adds every mistake of form in `text`: each entry, and each check of a claim, is read by itself. What could
/// be read is returned, so that the other mistakes can be reported, too.
pub(crate) fn add_mistakes(text: &str, mistakes: &mut Mistakes<'_>) -> Option<File> {
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        add(error.span().unwrap_or(0..0), error, mistakes);
    }
    if !errors.is_empty() {
        return None;
    }
    let span = root.span();
    let mut root = root.into_inner();
    let assumption = entries::<AssumptionEntry>(&mut root, "assumption", mistakes);
    let cells = entries::<CellsEntry>(&mut root, "cells", mistakes);
    let campaign = entries::<CampaignEntry>(&mut root, "campaign", mistakes);
    let figure = entries::<FigureEntry>(&mut root, "figure", mistakes);
    let table = entries::<TableEntry>(&mut root, "table", mistakes);
    let mut claims = Vec::new();
    for claim in take(&mut root, "claim") {
        let span = claim.span();
        let DeValue::Table(mut claim) = claim.into_inner() else { continue };
        let check = entries::<Spanned<CheckEntry>>(&mut claim, "check", mistakes);
        let claim = read::<ClaimEntry>(Spanned::new(span, DeValue::Table(claim)), mistakes);
        claims.extend(claim.map(|claim| ClaimEntry { check, ..claim }));
    }
    match File::deserialize(Deserializer::from(Spanned::new(span, root))) {
        Ok(file) => Some(File { assumption, cells, campaign, figure, table, claim: claims, ..file }),
        Err(error) => {
            add(error.span().unwrap_or(0..0), &error, mistakes);
            None
        }
    }
}

/// Adds each number in `text` that is none, since neither a bound nor a figure of a study can be `inf` or
/// `nan`, and each name and text with control characters other than tabs and the ends of lines: they would
/// steer the terminal of whoever reads the study.
pub(crate) fn add_unusable(text: &str, mistakes: &mut Mistakes<'_>) {
    let Ok(root) = DeTable::parse(text) else { return };
    let mut tables = vec![root.get_ref()];
    let mut open: Vec<&Spanned<DeValue<'_>>> = Vec::new();
    loop {
        if let Some(table) = tables.pop() {
            table.keys().for_each(|key| add_control_characters(key.span(), key.get_ref(), mistakes));
            open.extend(table.values());
        }
        let Some(value) = open.pop() else { return };
        match value.get_ref() {
            DeValue::Array(list) => open.extend(list.iter()),
            DeValue::Table(table) => tables.push(table),
            DeValue::String(text) => add_control_characters(value.span(), text, mistakes),
            // Its underscores are left out already. What is too large for a float is read as `inf`, too.
            DeValue::Float(float) if !float.as_str().parse().is_ok_and(f64::is_finite) => {
                let key = mistakes.key_before(value.span().start);
                let message = format!("found {}, expected a finite number", float.as_str());
                mistakes.add(value.span(), &key, message, None);
            }
            _ => {}
        }
    }
}

/// Control characters in `text`, other than tabs and the ends of lines.
fn add_control_characters(span: Range<usize>, text: &str, mistakes: &mut Mistakes<'_>) {
    // A carriage return alone has the line written over.
    let text = text.replace("\r\n", "\n");
    let is_refused = |c: &char| c.is_control() && !matches!(c, '\t' | '\n');
    if let Some(found) = text.chars().find(is_refused) {
        let key = mistakes.key_before(span.start);
        let message = format!("found the control character {found:?}, expected plain text");
        mistakes.add(span, &key, message, None);
    }
}

/// Reads the entries called `name` one by one, and leaves an empty list in their place.
fn entries<T: DeserializeOwned>(table: &mut DeTable<'_>, name: &str, mistakes: &mut Mistakes<'_>) -> Vec<T> {
    take(table, name).into_iter().filter_map(|entry| read::<T>(entry, mistakes)).collect()
}

fn take<'i>(table: &mut DeTable<'i>, name: &str) -> Vec<Spanned<DeValue<'i>>> {
    let Some(list) = table.get_mut(name) else { return Vec::new() };
    match list.get_mut() {
        DeValue::Array(list) => core::mem::replace(list, DeArray::new()).into_iter().collect(),
        // Something else than a list: the reader of the rest says so.
        _ => Vec::new(),
    }
}

fn read<T: DeserializeOwned>(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes<'_>) -> Option<T> {
    let span = value.span();
    let read = T::deserialize(ValueDeserializer::from(value));
    read.map_err(|error| add(error.span().unwrap_or(span), &error, mistakes)).ok()
}

fn add(span: Range<usize>, error: &toml::de::Error, mistakes: &mut Mistakes<'_>) {
    let (key, message, help) = reworded(error.message());
    let key = if key.is_empty() { mistakes.key_before(span.start) } else { key };
    mistakes.add(span, &key, message, help);
}

//! What is wrong with the form of a study file, entry by entry: a reader of the whole file stops at its first
//! mistake.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, ValueDeserializer};

use crate::file::{AssumptionEntry, CellsEntry, CheckEntry, ClaimEntry, FigureEntry, File, TableEntry};
use crate::place::Mistakes;

/// Adds every mistake of form in `text`: each entry, and each check of a claim, is read by itself.
pub(crate) fn add_mistakes(text: &str, mistakes: &mut Mistakes<'_>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        add(error, mistakes);
    }
    if !errors.is_empty() {
        return;
    }
    let span = root.span();
    let mut root = root.into_inner();
    entries::<AssumptionEntry>(&mut root, "assumption", mistakes);
    entries::<CellsEntry>(&mut root, "cells", mistakes);
    entries::<FigureEntry>(&mut root, "figure", mistakes);
    entries::<TableEntry>(&mut root, "table", mistakes);
    for claim in take(&mut root, "claim") {
        let span = claim.span();
        let DeValue::Table(mut claim) = claim.into_inner() else { continue };
        entries::<Spanned<CheckEntry>>(&mut claim, "check", mistakes);
        read::<ClaimEntry>(Spanned::new(span, DeValue::Table(claim)), mistakes);
    }
    if let Err(error) = File::deserialize(Deserializer::from(Spanned::new(span, root))) {
        add(&error, mistakes);
    }
}

/// Reads the entries called `name` one by one, and leaves an empty list in their place.
fn entries<T: DeserializeOwned>(table: &mut DeTable<'_>, name: &str, mistakes: &mut Mistakes<'_>) {
    for entry in take(table, name) {
        read::<T>(entry, mistakes);
    }
}

fn take<'i>(table: &mut DeTable<'i>, name: &str) -> Vec<Spanned<DeValue<'i>>> {
    let Some(list) = table.get_mut(name) else { return Vec::new() };
    match list.get_mut() {
        DeValue::Array(list) => core::mem::replace(list, DeArray::new()).into_iter().collect(),
        // Something else than a list: the reader of the rest says so.
        _ => Vec::new(),
    }
}

fn read<T: DeserializeOwned>(value: Spanned<DeValue<'_>>, mistakes: &mut Mistakes<'_>) {
    let span = value.span();
    if let Err(error) = T::deserialize(ValueDeserializer::from(value)) {
        mistakes.add(error.span().unwrap_or(span), "", error.message(), None);
    }
}

fn add(error: &toml::de::Error, mistakes: &mut Mistakes<'_>) {
    mistakes.add(error.span().unwrap_or(0..0), "", error.message(), None);
}

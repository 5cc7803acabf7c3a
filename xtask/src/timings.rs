//! What the build costs, crate by crate, from what `cargo build --timings` left (docs/reference/building.md).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A Markdown table of the crates that cost most, read from `page` or the newest page of
/// `cargo build --timings`.
pub(crate) fn run(root: &Path, page: Option<&str>) -> Result<String, String> {
    let path = page.map_or_else(|| root.join("target/cargo-timings/cargo-timing.html"), Into::into);
    let page = fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}; cargo build --release --timings writes it", path.display()))?;
    let seconds = seconds(&page);
    if seconds.is_empty() {
        return Err(format!("{}: no timings in it", path.display()));
    }
    Ok(table(&seconds))
}

/// Seconds by crate, its build script and all its targets together.
fn seconds(page: &str) -> BTreeMap<String, f64> {
    let mut seconds = BTreeMap::new();
    let units = page.split_once("UNIT_DATA = [").map_or("", |(_, rest)| rest);
    let units = units.split_once("\n];").map_or(units, |(units, _)| units);
    for unit in units.split("\"name\":").skip(1) {
        let name = unit.split('"').nth(1);
        let duration = unit.split_once("\"duration\":").map(|(_, rest)| rest);
        let duration =
            duration.and_then(|rest| rest.split([',', '}', '\n']).next()?.trim().parse::<f64>().ok());
        if let (Some(name), Some(duration)) = (name, duration) {
            *seconds.entry(name.to_owned()).or_insert(0.0) += duration;
        }
    }
    seconds
}

fn table(seconds: &BTreeMap<String, f64>) -> String {
    let sum: f64 = seconds.values().sum();
    let mut by_cost: Vec<_> = seconds.iter().collect();
    by_cost.sort_by(|left, right| right.1.total_cmp(left.1));
    let mut text = "| crate | seconds | share |\n| --- | ---: | ---: |\n".to_owned();
    let mut line = |name: &str, cost: f64| {
        let _ = writeln!(text, "| {name} | {cost:.1} | {:.1} % |", cost / sum * 100.0);
    };
    for (name, cost) in by_cost.iter().take(SHOWN) {
        line(name, **cost);
    }
    let rest = by_cost.get(SHOWN..).unwrap_or_default();
    line(&format!("{} more", rest.len()), rest.iter().map(|(_, cost)| **cost).sum());
    line("all", sum);
    text.trim_end().to_owned()
}

/// Crates with a line of their own.
const SHOWN: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crates_targets_and_build_script_add_up() {
        let page = "const UNIT_DATA = [\n  {\n    \"name\": \"libc\",\n    \"duration\": 1.5,\n    \"sections\": null\n  },\n  \
                    {\n    \"name\": \"libc\",\n    \"duration\": 0.5\n  },\n  {\n    \"name\": \"syn\",\n    \"duration\": 6\n  }\n];\n\
                    const CONCURRENCY_DATA = [{\"name\": \"x\", \"duration\": 9}];";
        let seconds = seconds(page);
        assert_eq!(seconds.len(), 2);
        assert!((seconds["libc"] - 2.0).abs() < 1e-9);
        assert!(table(&seconds).contains("| syn | 6.0 | 75.0 % |"), "{}", table(&seconds));
    }
}

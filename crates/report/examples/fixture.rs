//! Writes the tests' made-up comparison, to look at: `cargo run -p talkpath-report --example fixture -- table
//! 100 5`, or `... -- page > report.html` (or `single`, or `sweep 10`).
#[expect(dead_code, reason = "only the tests change what the fixture made")]
#[path = "../tests/fixture/mod.rs"]
mod fixture;

use talkpath_report::{Page, Style, comparison_table, html, run_table};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let what = arguments.first().map_or("table", String::as_str);
    match what {
        "page" | "single" | "sweep" => {
            let (summary, figures) = match what {
                "single" => fixture::single(),
                "sweep" => fixture::sweep(number(1, 10)),
                _ => (fixture::summary(number(1, 1)), fixture::figures()),
            };
            let command = "talkpath compare --seed 1";
            let page = Page {
                summary: &summary,
                chart_data: &figures,
                scenario_toml: fixture::SCENARIO,
                command,
                changes: &[],
                network: None,
                sounds: None,
            };
            print!("{}", html(&page));
        }
        _ => {
            let style = Style { width: number(1, 100) as usize, color: number(3, 0) == 1, explain: true };
            let summary = fixture::summary(number(2, 1));
            print!("{}\n{}", comparison_table(&summary, "call", &style), run_table(&summary, &style));
        }
    }
}

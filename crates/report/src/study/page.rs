//! The page of a study: verdicts, published beside reproduced under every assumption set and in every arena,
//! figures.

use talkpath_study::{
    ArenaVerdict, CheckOutcome, ClaimKind, ClaimOutcome, Outcome, Role, RowOutcome, Verdict, arena_list,
    shown, shown_figure, shown_must, shown_value,
};

use super::figure::draw;
use super::{about, count, headline, mark, medians, spread};
use crate::html::document;
use crate::plot::svg::escape;

/// The page, self-contained.
pub fn study_page(outcome: &Outcome, talkpath: &str, command: &str) -> String {
    let mut main = String::new();
    if !outcome.valid {
        main.push_str("<p class=\"invalid\" role=\"alert\">Not every cell ran to its end undisturbed.</p>\n");
    }
    if !outcome.warnings.is_empty() {
        let list: String =
            outcome.warnings.iter().map(|warning| format!("<li>{}</li>\n", escape(warning))).collect();
        main.push_str(&format!("<div class=\"warnings\"><strong>Warnings</strong><ul>\n{list}</ul></div>\n"));
    }
    main.push_str(&overview(outcome));
    main.push_str(&assumptions(outcome));
    main.push_str("<section>\n<h2>Every claim</h2>\n");
    for claim in &outcome.claims {
        main.push_str(&details(claim, outcome));
    }
    main.push_str("</section>\n");
    main.push_str(&tables(outcome));
    let figures: String = outcome.figures.iter().map(|figure| draw(figure).html()).collect();
    if !figures.is_empty() {
        main.push_str(&format!("<section>\n<h2>Figures</h2>\n{figures}</section>\n"));
    }
    main.push_str(&format!(
        "<section>\n<h2>How to repeat this</h2>\n<pre>{}</pre>\n</section>\n",
        escape(command)
    ));
    document(&format!("{}: {}", outcome.study, outcome.title), &about(outcome), &main, talkpath)
}

fn overview(outcome: &Outcome) -> String {
    let several = outcome.arenas.len() > 1;
    let rows = outcome.claims.iter().map(|claim| {
        let words = |it: &ArenaVerdict| escape(&headline(it, &it.verdict.to_string(), several));
        let verdicts: Vec<String> = claim.verdicts().map(words).collect();
        let text = [&claim.claim, &claim.published, &claim.base.reproduced].map(|text| escape(text));
        let [what, published, here] = text;
        Row {
            is_marked: claim.base.verdict == Verdict::Reproduced && claim.base.holds_under_base == Some(true),
            cells: vec![escape(&claim.id), verdicts.join("<br/>"), what, published, here],
        }
    });
    let rows: Vec<Row> = rows.collect();
    let here = match several {
        true => format!("here, in {}, under the base assumptions", outcome.arena),
        false => "here, under the base assumptions".to_owned(),
    };
    // About a hundredth of the width for a character: no claim's name is cut in two.
    let longest = outcome.claims.iter().map(|claim| claim.id.chars().count()).max().unwrap_or(0);
    let claim = (longest as u32 + 2).clamp(7, 14);
    let columns =
        [("claim", claim), ("verdict", 23), ("what it says", 30 - claim), ("published", 17), (&here, 30)];
    let (count, table) = (escape(&count(outcome)), prose_table(&columns, &rows));
    format!("<section>\n<h2>Verdicts</h2>\n<p>{count}</p>\n{table}</section>\n")
}

/// A row of a table of running text: its cells as HTML, the first of them its head.
struct Row {
    /// Whether the head stands out.
    is_marked: bool,
    cells: Vec<String>,
}

/// A table of running text that fits the page: its columns have shares of the width. Each cell carries its
/// column's name, which a narrow screen shows in front of it.
fn prose_table(columns: &[(&str, u32)], rows: &[Row]) -> String {
    let widths: String =
        columns.iter().map(|(_, share)| format!("<col style=\"width:{share}%\"/>")).collect();
    let heads: String =
        columns.iter().map(|(head, _)| format!("<th class=\"left\">{}</th>", escape(head))).collect();
    let rows: String = rows.iter().map(|row| prose_row(columns, row)).collect();
    format!(
        "<table class=\"prose\">\n<colgroup>{widths}</colgroup>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table>\n"
    )
}

fn prose_row(columns: &[(&str, u32)], row: &Row) -> String {
    let class = if row.is_marked { " class=\"best\"" } else { "" };
    let mut html = format!("<tr{class}>");
    for (index, (cell, (head, _))) in row.cells.iter().zip(columns).enumerate() {
        match index {
            0 => html.push_str(&format!("<th class=\"left\">{cell}</th>")),
            _ => html.push_str(&format!("<td class=\"left\" data-head=\"{}\">{cell}</td>", escape(head))),
        }
    }
    html.push_str("</tr>\n");
    html
}

fn assumptions(outcome: &Outcome) -> String {
    let terms: String = outcome
        .assumptions
        .iter()
        .map(|(name, text)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(text)))
        .collect();
    format!("<section>\n<h2>Assumption sets</h2>\n<dl class=\"terms\">\n{terms}</dl>\n</section>\n")
}

fn details(claim: &ClaimOutcome, outcome: &Outcome) -> String {
    let several = outcome.arenas.len() > 1;
    let mut html = format!("<h3>{}: {}</h3>\n", escape(&claim.id), escape(&claim.claim));
    for verdict in claim.verdicts() {
        let arena = if several { format!(" in {}", escape(&verdict.arena)) } else { String::new() };
        let under = if verdict.under.is_empty() { String::new() } else { format!("{}. ", verdict.under) };
        let words = escape(&format!("{under}{}", verdict.why));
        html.push_str(&format!("<p><strong>{}</strong>{arena}: {words}</p>\n", verdict.verdict));
        html.push_str(&checks(verdict));
    }
    html
}

/// Every check of a claim in one arena, folded; what compares arenas stands open.
fn checks(verdict: &ArenaVerdict) -> String {
    let (mut agreements, mut others) = (Vec::new(), Vec::new());
    for under in &verdict.by_assumption {
        for check in under.checks.iter().filter(|check| !check.values.is_empty()) {
            match check.must {
                ClaimKind::Agree { .. } => agreements.push(agreement(check)),
                _ => others.push(row(&under.assumption, check)),
            }
        }
    }
    let mut html = String::new();
    if !agreements.is_empty() {
        let columns = [
            ("check", 28),
            ("simulator", 15),
            ("kernel", 15),
            ("off by", 12),
            ("smallest to largest: simulator, kernel", 18),
            ("asked", 12),
        ];
        html.push_str(&prose_table(&columns, &agreements));
    }
    if !others.is_empty() {
        let columns = [
            ("check", 24),
            ("assumptions", 13),
            ("asked", 16),
            ("here", 27),
            ("verdict", 11),
            ("single runs", 9),
        ];
        html.push_str(&format!(
            "<details><summary>Every check</summary>\n{}</details>\n",
            prose_table(&columns, &others)
        ));
    }
    html
}

/// Printed figures beside ours, the predicted ones separate from those that the set-up was fitted to.
fn tables(outcome: &Outcome) -> String {
    let mut html = String::new();
    for published in &outcome.tables {
        for role in [Role::Predicted, Role::Fitted, Role::Exempt] {
            let rows: Vec<Row> =
                published.rows.iter().filter(|row| row.row.role == role).map(published_row).collect();
            if rows.is_empty() {
                continue;
            }
            let arenas = arena_list(&outcome.arenas);
            let here = format!("here, in {arenas}");
            let columns = [("cell", 28), ("published", 14), (here.as_str(), 26), ("off by", 9), ("note", 23)];
            let title = format!("{}: {role}", published.title);
            html.push_str(&format!("<h3>{}</h3>\n{}", escape(&title), prose_table(&columns, &rows)));
        }
    }
    if html.is_empty() {
        return html;
    }
    format!(
        "<section>\n<h2>Published beside reproduced</h2>\n<p>Medians under the base assumptions. <em>Predicted</em>: the set-up was \
         not chosen by these figures; <em>fitted</em>: a parameter was; <em>exempt</em>: the publication itself rules them out.</p>\n{html}\
         </section>\n"
    )
}

fn published_row(row: &RowOutcome) -> Row {
    let RowOutcome { row, values, off } = row;
    let what = if row.what.is_empty() { format!("{}, {}", row.cell, row.metric) } else { row.what.clone() };
    let values: Vec<_> = values.iter().map(|value| shown_value(&value.metric, value)).collect();
    let off = off.map_or_else(String::new, |off| format!("{:+.1} %", 100.0 * off));
    let cells = [what, shown(&row.metric, row.published), values.join(", "), off, row.note.clone()];
    Row { is_marked: false, cells: cells.iter().map(|text| escape(text)).collect() }
}

fn row(assumption: &str, check: &CheckOutcome) -> Row {
    let single = format!("{} of {}", check.single_hits, check.single_runs);
    let texts = [&check.name, assumption, &shown_must(check), &medians(check), mark(check), &single];
    marked_row(check, texts)
}

fn agreement(check: &CheckOutcome) -> Row {
    let value = |index: usize| {
        check.values.get(index).map_or_else(String::new, |value| shown_value(&value.metric, value))
    };
    let spreads: Vec<_> = check.values.iter().map(spread).collect();
    let asked = format!("{}: {}", shown_must(check), mark(check));
    let off = shown_figure(check).unwrap_or_default();
    marked_row(check, [&check.name, &value(0), &value(1), &off, &spreads.join("; "), &asked])
}

/// What fails stands out.
fn marked_row(check: &CheckOutcome, texts: [&str; 6]) -> Row {
    Row { is_marked: check.holds == Some(false), cells: texts.iter().map(|text| escape(text)).collect() }
}

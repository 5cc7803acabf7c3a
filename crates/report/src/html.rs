//! The one-page report: self-contained, complete without scripts, light and dark.

use crate::Page;
use crate::plot::svg::escape;
use crate::tables;
use crate::verdict::judge;
use crate::view::{conditions, main_flow};

/// The page, as XHTML-clean HTML5.
pub fn html(page: &Page<'_>) -> String {
    let flow = main_flow(page.summary);
    let mut body = format!("<h1>{}</h1>\n", escape(&page.summary.name));
    for condition in conditions(page.summary, &flow) {
        let verdict = judge(&condition, &flow);
        let best = verdict.as_ref().map_or(&[][..], |verdict| &verdict.best);
        body.push_str(&tables::comparison(&condition, &flow, best).html("Transports compared"));
        if let Some(verdict) = &verdict {
            body.push_str(&format!("<p>{}</p>\n", escape(&verdict.winner.sentence)));
        }
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>{}</title>\n</head>\n<body>\n\
         {body}<details><summary>Scenario</summary><pre>{}</pre></details>\n<p>Repeat it: <code>{}</code></p>\n\
         <p>{} cells have figures.</p>\n</body>\n</html>\n",
        escape(&page.summary.name),
        escape(page.scenario_toml),
        escape(page.command),
        page.figures.len()
    )
}

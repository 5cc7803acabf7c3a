//! Writes thresholds as XML in the form of JUnit, which continuous integration can read. A run is a test
//! suite, and a threshold is a test case. The form has no standard, so only elements are used that all
//! readers know (<https://github.com/testmoapp/junitxml>).

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use talkpath_measure::summary::{ThresholdOutcome, ThresholdSummary};

/// The elements for a test case that failed, and for a test case that could not be decided.
const FAILURE: &str = "failure";
const ERROR: &str = "error";

/// Writes the document for the run `name`. An undecided threshold has neither passed nor failed, so it is an
/// error.
pub(super) fn xml(name: &str, judged: &[ThresholdSummary]) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |element| {
        judged.iter().filter(|threshold| problem_element(threshold) == Some(element)).count().to_string()
    };
    let (tests, failures, errors) = (judged.len().to_string(), count(FAILURE), count(ERROR));
    let counts = [("tests", tests.as_str()), ("failures", failures.as_str()), ("errors", errors.as_str())];
    let suites = writer.create_element("testsuites").with_attributes(counts);
    suites.write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", name)).with_attributes(counts);
        suite.write_inner_content(|writer| {
            judged.iter().try_for_each(|threshold| case(name, threshold, writer))
        })?;
        Ok(())
    })?;
    let mut text = writer.into_inner();
    text.push(b'\n');
    Ok(text)
}

/// Writes the test case of a threshold.
fn case(name: &str, judged: &ThresholdSummary, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
    let ThresholdSummary { figure, bound, text, .. } = judged;
    let title = format!("{figure} {bound}");
    let case = writer.create_element("testcase");
    let case = case.with_attributes([("classname", name), ("name", title.as_str())]);
    match problem_element(judged) {
        None => case.write_empty()?,
        Some(element) => case.write_inner_content(|writer| {
            let needed = [("needed", judged.needed), ("needed_repetitions", judged.needed_repetitions)];
            let needed: Vec<_> =
                needed.into_iter().filter_map(|(name, count)| Some((name, count?.to_string()))).collect();
            if !needed.is_empty() {
                writer.create_element("properties").write_inner_content(|writer| {
                    for (name, count) in &needed {
                        let property = [("name", *name), ("value", count.as_str())];
                        writer.create_element("property").with_attributes(property).write_empty()?;
                    }
                    Ok(())
                })?;
            }
            let mut problem = writer.create_element(element).with_attribute(("message", text.as_str()));
            if judged.outcome == ThresholdOutcome::Undecided {
                problem = problem.with_attribute(("type", "undecided"));
            }
            problem.write_text_content(BytesText::new(text))?;
            Ok(())
        })?,
    };
    Ok(())
}

/// The name of the element that says why a test case did not pass, or `None` if it passed.
const fn problem_element(judged: &ThresholdSummary) -> Option<&'static str> {
    match judged.outcome {
        ThresholdOutcome::Holds => None,
        ThresholdOutcome::Fails | ThresholdOutcome::Unknown => Some(FAILURE),
        ThresholdOutcome::Undecided => Some(ERROR),
    }
}

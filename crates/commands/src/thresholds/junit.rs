//! JUnit's XML: one test suite a run, one test case a threshold. It is what continuous integration reads;
//! there is no standard, and the elements are those that all readers know
//! (<https://github.com/testmoapp/junitxml>).

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::Judgement;

/// The document for a run called `name`.
pub(super) fn xml(name: &str, judged: &[Judgement]) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let (tests, failures) =
        (judged.len().to_string(), judged.iter().filter(|it| !it.holds()).count().to_string());
    let counts = [("tests", tests.as_str()), ("failures", failures.as_str())];
    let suites = writer.create_element("testsuites").with_attributes(counts);
    suites.write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", name)).with_attributes(counts);
        suite.write_inner_content(|writer| judged.iter().try_for_each(|it| case(name, it, writer)))?;
        Ok(())
    })?;
    let mut text = writer.into_inner();
    text.push(b'\n');
    Ok(text)
}

fn case(name: &str, judged: &Judgement, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
    let title = format!("{} {}", judged.figure, judged.bound);
    let case = writer.create_element("testcase");
    let case = case.with_attributes([("classname", name), ("name", title.as_str())]);
    let text = judged.text();
    match judged.holds() {
        true => case.write_empty()?,
        false => case.write_inner_content(|writer| {
            let failure = writer.create_element("failure").with_attribute(("message", text.as_str()));
            failure.write_text_content(BytesText::new(&text))?;
            Ok(())
        })?,
    };
    Ok(())
}

//! Loads scenarios for the tests of this folder.

use talkpath_scenario::{Diagnostics, Options, Plan, Setting, Source, load};

/// A scenario of five lines without mistakes.
pub(crate) const GOOD: &str =
    "duration = \"60 s\"\npath = \"home-adsl\"\n[flow.call]\ntransport = \"udp\"\nworkload = \"voice\"\n";

/// A scenario with a TCP flow.
pub(crate) const TCP: &str =
    "duration = \"10 s\"\npath = \"home-adsl\"\n[flow.call]\ntransport = \"tcp\"\nworkload = \"voice\"\n";

/// Options that set these keys.
pub(crate) fn set(keys: &[(&str, &str)]) -> Options {
    let set = keys.iter().map(|(key, value)| Setting::new(*key, *value)).collect();
    Options { set, ..Options::default() }
}

/// Loads a scenario without mistakes, whose resolved form gives an equal plan.
#[track_caller]
pub(crate) fn plan(text: &str, options: &Options) -> Plan {
    plan_named("base.toml", text, options)
}

/// Loads a scenario without mistakes from a file of this name.
#[track_caller]
pub(crate) fn plan_named(file: &str, text: &str, options: &Options) -> Plan {
    let plan =
        load(&Source::new(file, text), options).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    let again = load(&Source::new("scenario.toml", plan.resolved.as_str()), &Options::default());
    let again = again.unwrap_or_else(|mistakes| panic!("{mistakes}\n{}", plan.resolved));
    assert_eq!(again.cells, plan.cells, "{}", plan.resolved);
    assert_eq!((&again.name, again.repeat, again.seed), (&plan.name, plan.repeat, plan.seed));
    assert_eq!(again.resolved, plan.resolved);
    plan
}

/// Loads a scenario that has mistakes.
#[track_caller]
pub(crate) fn mistakes(text: &str) -> Diagnostics {
    mistakes_with(text, &Options::default())
}

/// Loads a scenario that has mistakes with these settings, and returns the mistakes as text.
#[track_caller]
pub(crate) fn refused(text: &str, settings: &[Setting]) -> String {
    mistakes_with(text, &Options { set: settings.to_vec(), ..Options::default() }).to_string()
}

#[track_caller]
fn mistakes_with(text: &str, options: &Options) -> Diagnostics {
    match load(&Source::new("f.toml", text), options) {
        Ok(_) => panic!("nothing was found wrong with\n{text}"),
        Err(mistakes) => mistakes,
    }
}

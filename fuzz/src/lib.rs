//! What several fuzz targets need.

use talkpath_kernel::spec::SessionSpec;
use talkpath_model::Scenario;
use talkpath_scenario::{Options, Source, load};
use talkpath_units::Seed;
use talkpath_wire::machine::Machines;

/// The state machines of our own protocols.
pub const MACHINES: Machines = Machines::made_by(talkpath_transport::new_machine);

/// The scenario that `text` describes.
pub fn scenario(text: &str) -> Scenario {
    let plan = load(&Source::new("fuzz.toml", text), &Options::default());
    let plan = plan.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    plan.cells.into_iter().next().expect("a plan has a cell").scenario
}

/// A scenario of one second on a LAN with these flows, and what two hosts agree on for it.
pub fn session(flows: &str) -> (Scenario, SessionSpec) {
    let scenario = scenario(&format!("name = \"fuzz\"\nduration = \"1 s\"\npath = \"lan\"\n{flows}"));
    let spec = SessionSpec::new(&scenario, Seed::new(1), None).expect("both hosts can do it");
    (scenario, spec)
}

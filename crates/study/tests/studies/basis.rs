//! A check's basis beside what the published numbers of the same cell and metric were used for.

use talkpath_scenario::Source;
use talkpath_study::load;

use super::{SCENARIO, STUDY, TABLE};

/// What a study with a printed loss of `call-far` of this role has to say.
fn contradictions(role: &str) -> Vec<String> {
    let csv = format!("cell,metric,published,role\ncall-far,flows.call.loss_rate,0.01,{role}\n");
    let files = [Source::new("call.toml", SCENARIO), Source::new("paper.csv", csv)];
    let study = load("test-1999", &Source::new("study.toml", format!("{STUDY}{TABLE}")), &files);
    study.unwrap_or_else(|mistakes| panic!("{mistakes}")).basis_contradictions()
}

#[test]
fn one_number_is_not_predicted_in_a_check_and_fitted_in_a_table() {
    assert!(contradictions("predicted").is_empty());
    let found = contradictions("fitted");
    assert_eq!(
        found,
        [
            "C1, loss: its basis is predicted, but its published number is fitted; expected fitted",
            "C2, order: its basis is predicted, but a published number of its sides is fitted; expected assumed or fitted",
        ]
    );
}

//! What tests of several crates share: how properties are tested. No crate depends on it but for its tests.
//!
//! `cargo test` draws the same cases on every machine and every time. `PROPTEST_RNG_SEED=N` draws others, and
//! `PROPTEST_CASES=N` as many as it says; `cargo xtask nightly --only properties` does both.

use proptest::test_runner::{Config, RngAlgorithm, RngSeed, contextualize_config};

/// The configuration of a property that is tested with this number of `cases`.
///
/// A failing property says how to repeat it, and its input: the output of a test that fails shows the line
/// that this prints, and proptest prints the input when it has made it as small as the time allows.
pub fn properties(cases: u32) -> Config {
    let config = contextualize_config(Config {
        cases,
        // The same draws with every version of proptest's default algorithm.
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(SEED),
        max_shrink_time: SHRINK_MS,
        // A file of seeds beside the sources says nothing to the next machine, and a generator that changes
        // makes others of them. A case that failed becomes a test of its own.
        failure_persistence: None,
        ..Config::default()
    });
    println!("to repeat this: PROPTEST_RNG_SEED={} PROPTEST_CASES={}", config.rng_seed, config.cases);
    config
}

/// The seed of `cargo test`. Chosen.
const SEED: u64 = 1;
/// After so many milliseconds no smaller input is looked for. Chosen, so that a failure is there within a
/// minute: a case takes some seconds at the most.
const SHRINK_MS: u32 = 20_000;

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;

    /// A case that takes a while, so that the time for smaller inputs is over before they are found.
    #[test]
    fn a_property_that_fails_names_its_input_though_the_time_to_shrink_it_is_over() {
        let mut runner = TestRunner::new(Config { max_shrink_time: 1, ..properties(8) });
        let failed = runner.run(&proptest::collection::vec(any::<u64>(), 100..200), |numbers| {
            let slow: u64 = (0..300_000_u64).fold(0, |sum, at| sum ^ at.wrapping_mul(numbers[0]));
            prop_assert!(numbers.is_empty() || slow == 1);
            Ok(())
        });
        let said = failed.expect_err("it fails").to_string();
        assert!(said.contains("minimal failing input: ["), "{said}");
    }

    #[test]
    fn the_same_cases_are_drawn_each_time_and_the_environment_may_ask_for_others() {
        let drawn = || {
            let mut runner = TestRunner::new(properties(4));
            let tree = any::<[u64; 4]>().new_tree(&mut runner).expect("a case");
            proptest::strategy::ValueTree::current(&tree)
        };
        assert_eq!(drawn(), drawn());
        assert!(catch_unwind(|| properties(4)).is_ok_and(|config| config.failure_persistence.is_none()));
    }
}

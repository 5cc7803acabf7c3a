//! The passes. A pass takes the tree of a scenario, changes it in one way, and returns it.
//!
//! | pass | change | tree |
//! | --- | --- | --- |
//! | [`recorded`] | completes the calls of an older run directory | the file |
//! | [`set`] | sets keys of the command line, writes out the path of a file ([`path_file`]) | the file |
//! | [`values`] | replaces percentages by numbers, and reads named files | the file |
//! | [`sweep`] | removes `[sweep]`, and sets the values of a cell | each cell |
//! | [`check`] | adds the meaning of each right value, and every default | each cell, swept files |
//!
//! [`crate::plan`] runs the passes in this order. Then [`crate::resolve`] makes the model of the meanings, so
//! no value is read a second time. The pass `set` comes before `values` because the command line may name
//! files.

pub(crate) mod check;
pub(crate) mod path_file;
pub(crate) mod recorded;
pub(crate) mod set;
pub(crate) mod sweep;
pub(crate) mod values;

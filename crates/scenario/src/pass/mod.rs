//! The passes: each takes the tree of a scenario, changes it in one way, and gives it on.
//!
//! | pass | what it does | to |
//! | --- | --- | --- |
//! | [`set`] | puts in what the command line sets | the file |
//! | [`values`] | puts numbers for per cent, and reads what is named outside the scenario | the file |
//! | [`sweep`] | takes `[sweep]` out, and puts a cell's values in | each cell |
//! | [`kernel`] | gives Linux transports what the key `kernel` says | each cell |
//! | [`check`] | reports what the key tables alone decide, notes what values mean | cells, swept files |
//! | [`fill`] | writes every default out, with what it means | each cell |
//!
//! [`crate::plan`] has the lists and runs them in this order. Then [`crate::resolve`] makes the model of a
//! cell's tree from the meanings: no value is read a second time. The command line comes before the values
//! because it may name files, and the kernel after the sweep because it may be swept.

pub(crate) mod check;
pub(crate) mod fill;
pub(crate) mod kernel;
pub(crate) mod set;
pub(crate) mod sweep;
pub(crate) mod values;

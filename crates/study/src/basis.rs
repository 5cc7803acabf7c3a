//! Whether a check's basis agrees with what the published numbers beside it were used for.
//!
//! Both say what a figure rests on: a check's `basis`, and the `role` of the row of a table that has the same
//! cell and metric. A check of several figures rests on the weakest: it is fitted if all its figures are, and
//! no prediction if one figure is.

use std::collections::BTreeMap;

use crate::claim::{Basis, Check};
use crate::study::Study;
use crate::table::Role;

impl Study {
    /// The checks whose basis says otherwise than the published numbers of the same cells and metrics, each
    /// in words for a person.
    pub fn basis_contradictions(&self) -> Vec<String> {
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        let roles: BTreeMap<(&str, &str), Role> =
            rows.map(|row| ((row.cell.as_str(), row.metric.as_str()), row.role)).collect();
        let all = self.claims.iter().flat_map(|claim| claim.checks.iter().map(move |check| (claim, check)));
        let contradiction = |(claim, check): (&crate::Claim, &Check)| {
            let of = |it: &crate::Operand| roles.get(&(it.cell.as_str(), it.metric.as_str())).copied();
            let sides: Vec<Option<Role>> = check.operands.iter().map(of).collect();
            let (found, expected) = contradicts(check.basis, &sides)?;
            let (id, name) = (&claim.id, &check.name);
            Some(format!("{id}, {name}: its basis is {}, but {found}; expected {expected}", check.basis))
        };
        all.filter_map(contradiction).collect()
    }
}

/// What the roles of a check's figures say against its basis, and what would agree; `None` for a figure that
/// no table has. What the publication rules out says nothing of ours.
fn contradicts(basis: Basis, sides: &[Option<Role>]) -> Option<(&'static str, &'static str)> {
    let is = |wanted: Role| sides.contains(&Some(wanted));
    let are_all = |wanted: Role| !sides.is_empty() && sides.iter().all(|it| *it == Some(wanted));
    let several = sides.len() > 1;
    match basis {
        Basis::Predicted | Basis::Assumed if are_all(Role::Fitted) => match several {
            true => Some(("all its published numbers are fitted", "fitted")),
            false => Some(("its published number is fitted", "fitted")),
        },
        Basis::Predicted if is(Role::Fitted) => {
            Some(("a published number of its sides is fitted", "assumed or fitted"))
        }
        Basis::Predicted if is(Role::Assumed) => match several {
            true => Some(("a published number of its sides is assumed", "assumed")),
            false => Some(("its published number is assumed", "assumed")),
        },
        Basis::Fitted | Basis::Assumed if !several && is(Role::Predicted) => {
            Some(("its published number is predicted", "predicted"))
        }
        Basis::Fitted if !several && is(Role::Assumed) => {
            Some(("its published number is assumed", "assumed"))
        }
        Basis::Fitted | Basis::Assumed | Basis::Predicted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_rests_on_the_weakest_of_its_figures() {
        let (fitted, assumed, predicted) = (Some(Role::Fitted), Some(Role::Assumed), Some(Role::Predicted));
        let expected = |basis, sides: &[Option<Role>]| contradicts(basis, sides).map(|it| it.1);
        assert_eq!(expected(Basis::Predicted, &[fitted, fitted]), Some("fitted"));
        assert_eq!(expected(Basis::Predicted, &[fitted, predicted]), Some("assumed or fitted"));
        assert_eq!(expected(Basis::Predicted, &[fitted, None]), Some("assumed or fitted"));
        assert_eq!(expected(Basis::Assumed, &[fitted, predicted]), None);
        assert_eq!(expected(Basis::Predicted, &[assumed, predicted]), Some("assumed"));
        assert_eq!(expected(Basis::Predicted, &[predicted, predicted]), None);
        // One number cannot be two things.
        assert_eq!(expected(Basis::Fitted, &[predicted]), Some("predicted"));
        assert_eq!(expected(Basis::Predicted, &[fitted]), Some("fitted"));
        assert_eq!(expected(Basis::Fitted, &[Some(Role::Exempt)]), None);
        assert_eq!(expected(Basis::Fitted, &[None]), None);
    }
}

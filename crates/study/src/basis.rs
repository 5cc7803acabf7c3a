//! Compares the basis of each check with the roles of the published numbers beside it.
//!
//! The *basis* of a check says what its figure rests on: it was fitted, assumed or predicted. The *role* of a
//! published number, a row of a table of the study, says the same of that number. If a check and a row have
//! the same cell and metric, the two must agree.
//!
//! A check of several figures rests on the weakest of them. It is fitted if all its figures are fitted, and
//! it is not predicted if one of them is fitted or assumed.

use std::collections::BTreeMap;

use crate::claim::{Basis, Check};
use crate::study::Study;
use crate::table::Role;

impl Study {
    /// Lists the checks whose basis contradicts the roles of the published numbers of the same cells and
    /// metrics, each as a sentence.
    pub fn basis_contradictions(&self) -> Vec<String> {
        let mut roles: BTreeMap<(&str, &str), Role> = BTreeMap::new();
        for row in self.tables.iter().flat_map(|table| &table.rows) {
            roles.insert((&row.cell, &row.metric), row.role);
        }
        let mut sentences = Vec::new();
        for claim in &self.claims {
            for Check { name, basis, operands, .. } in &claim.checks {
                let role = |operand: &crate::Operand| {
                    roles.get(&(operand.cell.as_str(), operand.metric.as_str())).copied()
                };
                let roles: Vec<Option<Role>> = operands.iter().map(role).collect();
                if let Some(Contradiction { found, expected }) = contradiction(*basis, &roles) {
                    let id = &claim.id;
                    sentences.push(format!(
                        "{id}, {name}: its basis is {basis}, but {found}; expected {expected}"
                    ));
                }
            }
        }
        sentences
    }
}

/// What the roles say, and the basis that would agree with them.
struct Contradiction {
    found: &'static str,
    expected: &'static str,
}

/// Compares the basis of a check with the roles of its operands. The role is `None` for an operand that no
/// table has. An exempt number contradicts nothing, because it says nothing about our set-up.
fn contradiction(basis: Basis, roles: &[Option<Role>]) -> Option<Contradiction> {
    let has = |wanted: Role| roles.contains(&Some(wanted));
    let are_all_fitted = !roles.is_empty() && roles.iter().all(|role| *role == Some(Role::Fitted));
    let is_single = roles.len() <= 1;
    let (found, expected) = match basis {
        Basis::Predicted | Basis::Assumed if are_all_fitted && is_single => {
            ("its published number is fitted", "fitted")
        }
        Basis::Predicted | Basis::Assumed if are_all_fitted => {
            ("all its published numbers are fitted", "fitted")
        }
        Basis::Predicted if has(Role::Fitted) => {
            ("a published number of its sides is fitted", "assumed or fitted")
        }
        Basis::Predicted if has(Role::Assumed) && is_single => ("its published number is assumed", "assumed"),
        Basis::Predicted if has(Role::Assumed) => ("a published number of its sides is assumed", "assumed"),
        Basis::Fitted | Basis::Assumed if is_single && has(Role::Predicted) => {
            ("its published number is predicted", "predicted")
        }
        Basis::Fitted if is_single && has(Role::Assumed) => ("its published number is assumed", "assumed"),
        Basis::Fitted | Basis::Assumed | Basis::Predicted => return None,
    };
    Some(Contradiction { found, expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_rests_on_the_weakest_of_its_figures() {
        let (fitted, assumed, predicted) = (Some(Role::Fitted), Some(Role::Assumed), Some(Role::Predicted));
        let expected =
            |basis, roles: &[Option<Role>]| contradiction(basis, roles).map(|found| found.expected);
        assert_eq!(expected(Basis::Predicted, &[fitted, fitted]), Some("fitted"));
        assert_eq!(expected(Basis::Predicted, &[fitted, predicted]), Some("assumed or fitted"));
        assert_eq!(expected(Basis::Predicted, &[fitted, None]), Some("assumed or fitted"));
        assert_eq!(expected(Basis::Assumed, &[fitted, predicted]), None);
        assert_eq!(expected(Basis::Predicted, &[assumed, predicted]), Some("assumed"));
        assert_eq!(expected(Basis::Predicted, &[predicted, predicted]), None);
        // A check of one number must agree with it.
        assert_eq!(expected(Basis::Fitted, &[predicted]), Some("predicted"));
        assert_eq!(expected(Basis::Predicted, &[fitted]), Some("fitted"));
        assert_eq!(expected(Basis::Fitted, &[Some(Role::Exempt)]), None);
        assert_eq!(expected(Basis::Fitted, &[None]), None);
    }
}

//! The table of secret formats, one file per kind of vendor.
//!
//! A row is one rule, made by [`token`](crate::rule::token) (a prefix gives it away), [`named`](crate::rule::named)
//! (only the name it is assigned to does) or [`shape`](crate::rule::shape). A new row also needs a line in
//! `examples.txt`. Order matters where two rules match the same: the first names the finding.

mod ai;
mod cloud;
mod code;
mod commerce;
mod generic;
mod messaging;
mod saas;

use crate::rule::Rule;

const GROUPS: [&[Rule]; 7] =
    [cloud::RULES, code::RULES, ai::RULES, messaging::RULES, commerce::RULES, saas::RULES, generic::RULES];

/// Every rule, in the order of the table.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    GROUPS.into_iter().flatten()
}

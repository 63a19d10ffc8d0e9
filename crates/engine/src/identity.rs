//! When two definitions are the same hook, which runs once for each event.

use crate::definition::{HandlerDefinition, HookDefinition};

/// For each definition the number of the first one that is the same.
pub(crate) fn first_equal<'a>(definitions: impl Iterator<Item = &'a HookDefinition>) -> Vec<usize> {
    let definitions: Vec<_> = definitions.collect();
    let first = |(number, definition): (usize, &&HookDefinition)| {
        definitions.iter().take(number).position(|earlier| same(earlier, definition)).unwrap_or(number)
    };
    definitions.iter().enumerate().map(first).collect()
}

/// Whether two definitions are the same: in everything but their origin, or, as v1.58 has it, in what they run.
fn same(a: &HookDefinition, b: &HookDefinition) -> bool {
    if a.profile == b.profile && a.profile.spec().identity_by_command {
        return match (&a.handler, &b.handler) {
            (HandlerDefinition::Command(a), HandlerDefinition::Command(b)) => {
                a.command == b.command && a.args == b.args
            }
            (a, b) => a == b,
        };
    }
    a == b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_the_same_wherever_it_was_configured() {
        let mut elsewhere = HookDefinition::builtin("b", &[]);
        elsewhere.origin.line = 7;
        let named = HookDefinition { name: Some("n".into()), ..HookDefinition::builtin("b", &[]) };
        assert_eq!(first_equal([&HookDefinition::builtin("b", &[]), &named, &elsewhere].into_iter()), [0, 1, 0]);
    }
}

//! The environment and the working directory of a command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::definition::{EnvPolicy, HookDefinition};
use crate::handler::{DefinitionError, HandlerEnv};

type Env = BTreeMap<String, String>;

/// What [`EnvPolicy::Minimal`] passes on, beside every `LC_` variable.
const MINIMAL: &[&str] = &["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV"];

/// What a policy leaves of the environment of `host`.
pub fn inherited(policy: &EnvPolicy, host: &Env) -> Env {
    let mut env = host.clone();
    match policy {
        EnvPolicy::Inherit => {}
        EnvPolicy::Minimal => env.retain(|name, _| MINIMAL.contains(&name.as_str()) || name.starts_with("LC_")),
        EnvPolicy::Only(names) => env.retain(|name, _| names.contains(name)),
    }
    env
}

/// What `definition` inherits of `host`, with its own variables in place.
pub(crate) fn of_hook(definition: &HookDefinition, host: &Env) -> Result<Env, DefinitionError> {
    let mut env = inherited(&definition.env_policy, host);
    for (name, value) in &definition.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(DefinitionError {
                field: "env",
                message: format!("`{}` cannot be a variable", name.escape_debug()),
                help: Some("names are not empty and have no `=`; names and values have no NUL".to_owned()),
            });
        }
        env.insert(name.clone(), value.clone());
    }
    Ok(env)
}

/// The working directory of `definition` below `env`'s.
pub(crate) fn dir_of_hook(definition: &HookDefinition, env: &HandlerEnv) -> PathBuf {
    match &definition.working_dir {
        Some(written) if definition.profile.spec().expands_references => {
            working_dir(written, &env.working_dir, &env.env)
        }
        Some(written) => env.working_dir.join(written),
        None => env.working_dir.clone(),
    }
}

/// The working directory that `written` names: `~`, `$V`, `${V}` and `${env.V}` are expanded, a relative one is joined
/// to `base`. One that expands to nothing is `base`.
pub(crate) fn working_dir(written: &str, base: &Path, env: &Env) -> PathBuf {
    let below_home = written.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let expanded = match below_home {
        Some(rest) => lookup(env, "HOME").to_owned() + &expand(rest, env),
        None => expand(written, env),
    };
    if expanded.is_empty() {
        tracing::warn!(working_dir = written, "a hook's working directory expands to nothing; the engine's is used");
    }
    base.join(expanded)
}

/// Replaces references to variables; an unset one gives nothing, and a `$` without a name stays.
fn expand(text: &str, env: &Env) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some((name, behind)) = after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            out.push_str(lookup(env, name.strip_prefix("env.").unwrap_or(name)));
            rest = behind;
        } else if after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
            let (name, behind) = after.split_at(end);
            out.push_str(lookup(env, name));
            rest = behind;
        } else {
            out.push('$');
        }
    }
    out + rest
}

fn lookup<'a>(env: &'a Env, name: &str) -> &'a str {
    env.get(name).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn env() -> Env {
        [("HOME", "/home/u"), ("V", "val"), ("EMPTY", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    }

    #[test]
    fn a_working_directory_is_expanded_and_joined() {
        for (written, expanded) in [
            ("~", "/home/u"),
            ("~/x", "/home/u/x"),
            ("~other", "/base/~other"),
            ("$V/${V}/${env.V}", "/base/val/val/val"),
            ("/abs/$UNSET", "/abs/"),
            ("rel", "/base/rel"),
            ("$UNSET", "/base/"),
            ("$EMPTY", "/base/"),
            ("", "/base/"),
            ("$1", "/base/$1"),
            ("a$", "/base/a$"),
            ("${V", "/base/${V"),
        ] {
            assert_eq!(working_dir(written, Path::new("/base"), &env()), Path::new(expanded), "{written}");
        }
    }

    proptest! {
        #[test]
        fn any_text_expands(text in "[$a{}.~/]*|.*") {
            let expanded = expand(&text, &env());
            prop_assert!(text.contains('$') || expanded == text);
        }
    }
}

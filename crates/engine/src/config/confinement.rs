//! What a hook says of its processes' bounds.

use std::num::NonZeroU64;

use super::DiagnosticKind as Kind;
use super::fields::{NETWORK, SANDBOX};
use super::section::Section;
use crate::definition::{Confinement, Sandbox};

/// Less than that, and no program starts.
const LEAST_MEMORY: u64 = 1 << 20;

/// Reads the bounds of a hook. Whether this system can hold them is found out when its handler is made.
pub(super) fn read(hook: &Section<'_>) -> Confinement {
    Confinement {
        max_memory: hook.size("max_memory", LEAST_MEMORY),
        max_cpu_seconds: hook.count("max_cpu_seconds", 1).and_then(|seconds| NonZeroU64::new(seconds as u64)),
        max_file_size: hook.size("max_file_size", 0),
        sandbox: hook.section("sandbox", SANDBOX).and_then(|section| sandbox(&section)),
        user: user(hook),
    }
}

fn user(hook: &Section<'_>) -> Option<String> {
    let user = hook.name("user")?;
    if user.trim().is_empty() {
        let problem = hook.problem(Kind::InvalidValue, "`user` names nobody").at(hook.place("user"));
        hook.report(problem.help("name an account, or leave it out"));
    }
    Some(user)
}

fn sandbox(section: &Section<'_>) -> Option<Sandbox> {
    if section.node("network").is_none() && section.node("write").is_none() {
        let problem =
            section.problem(Kind::FieldRequired, "this sandbox keeps nothing from the hook").at(section.head());
        section.report(problem.help("write `network: none`, or `write: […]` with what it may change"));
        return None;
    }
    let write = section.texts("write");
    if write.iter().flatten().any(|path| path.is_empty() || path.contains('\0')) {
        let problem = section.problem(Kind::InvalidValue, "`write` holds what is no path").at(section.place("write"));
        section.report(problem.help("`.` is the working directory; `write: []` lets it change nothing"));
    }
    Some(Sandbox {
        no_network: section.choice("network", &NETWORK).is_some(),
        write,
        required: section.bool("required").unwrap_or(true),
    })
}

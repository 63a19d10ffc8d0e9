//! Whose approvals count: the user's store, OLLM's, and what the environment names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gatehook_engine::trust::store::{Store, StoreError};
use gatehook_engine::trust::{Ground, Judgement, Project, ollm};

use crate::places::home;

/// The hash of a project's hooks that somebody without a terminal trusts.
pub(crate) const NAMED: &str = "GATEHOOK_TRUST_WORKSPACE";

/// Variables that switch hooks of a profile off, but for managed ones.
const SWITCHES: &[(&str, &str)] = &[("OLLAMA_HOOKS_ENABLED", "ollama-cli")];

/// The user's approvals.
pub(crate) fn store(env: &BTreeMap<String, String>) -> Result<Store, StoreError> {
    let folder = home(env, "XDG_STATE_HOME", ".local/state");
    folder.map(|folder| Store::new(folder.join("gatehook/trust.json"))).ok_or_else(|| StoreError {
        path: PathBuf::from("gatehook/trust.json"),
        doing: "found",
        cause: "neither XDG_STATE_HOME nor HOME is set".to_owned(),
    })
}

/// OLLM's approvals.
pub(crate) fn ollm_store(env: &BTreeMap<String, String>) -> Option<ollm::Store> {
    home(env, "", ".ollm").map(|folder| ollm::Store::new(folder.join("trusted-hooks.json")))
}

/// What the hooks of a project are judged by.
pub(crate) fn ground(project: Project, extensions: Vec<Project>, env: &BTreeMap<String, String>) -> Ground {
    Ground {
        project,
        extensions,
        approvals: store(env).and_then(|store| store.read()),
        ollm: ollm_store(env).map_or_else(|| Ok(ollm::Approvals::default()), |store| store.read()),
        named: env.get(NAMED).filter(|hash| !hash.is_empty()).cloned(),
    }
}

/// Takes out of force what the environment switches off.
pub(crate) fn switch_off(judgement: &mut Judgement, env: &BTreeMap<String, String>) {
    let is_off = |value: &String| matches!(value.to_ascii_lowercase().as_str(), "false" | "0" | "no" | "off");
    for (variable, profile) in SWITCHES.iter().filter(|(variable, _)| env.get(*variable).is_some_and(is_off)) {
        judgement.switch_off(profile, variable);
    }
}

//! From configuration files to hooks in force: where files are looked for, and all that is wrong with them at once.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_engine::config::{self, ConfigError, Diagnostic, DiagnosticKind, Document, ReadOptions};
use gatehook_engine::definition::Source;
use gatehook_engine::{BuildError, Executor, HandlerEnv, HookGroup, HooksConfig, Options, Registry};
use gatehook_events::Profile;
use gatehook_events::profile::NAMES;
use gatehook_gateway::settings::{self, Settings};

/// Names that a configuration file may have in its folder.
const FILE_NAMES: [&str; 4] = ["gatehook.yaml", "gatehook.yml", "gatehook.json", "gatehook.toml"];

/// The administrator's folder.
const MANAGED: &str = "/etc/gatehook";

/// The folder of files that are read beside the main one.
const DROP_INS: &str = "hooks.d";

/// A file, and who answers for it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) source: Source,
    pub(crate) path: PathBuf,
}

/// What files and environment say together.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    pub(crate) hooks: HooksConfig,
    pub(crate) max_concurrent_hooks: Option<NonZeroUsize>,
    /// What is said to the gateway.
    pub(crate) settings: Settings,
}

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PolicyError {
    /// All that is wrong at once.
    #[error("the configuration cannot be used")]
    Unusable {
        /// Files, and the environment, that cannot be understood.
        files: Vec<ConfigError>,
        /// Hooks of the other files that cannot be put into force.
        hooks: Vec<BuildError>,
    },
    /// `--dialect` names no profile.
    #[error("there is no profile `{0}`; profiles are {known}", known = NAMES.join(", "))]
    UnknownProfile(String),
    /// The working directory is gone.
    #[error("the working directory cannot be read: {0}")]
    WorkingDir(#[from] std::io::Error),
}

/// This process's environment; what is no UTF-8 is left out.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The files in their usual places and `named` ones, weakest first.
pub(crate) fn usual_places(env: &BTreeMap<String, String>, named: Option<&Path>) -> Vec<Place> {
    let mut places: Vec<Place> =
        folders(env).into_iter().flat_map(|(source, folder)| in_folder(source, &folder)).collect();
    places.extend(named.map(|path| Place { source: Source::User, path: path.to_owned() }));
    places
}

/// Everything that is looked at to find the usual places, whether it is there or not.
pub(crate) fn watched(env: &BTreeMap<String, String>, named: Option<&Path>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = usual_places(env, named).into_iter().map(|place| place.path).collect();
    for (_, folder) in folders(env) {
        paths.extend(FILE_NAMES.iter().map(|name| folder.join(name)));
        paths.push(folder.join(DROP_INS));
    }
    paths
}

/// The administrator's folder and the user's.
fn folders(env: &BTreeMap<String, String>) -> Vec<(Source, PathBuf)> {
    let user = env
        .get("XDG_CONFIG_HOME")
        .filter(|folder| Path::new(folder).is_absolute())
        .map(PathBuf::from)
        .or_else(|| env.get("HOME").map(|home| Path::new(home).join(".config")));
    let user = user.map(|folder| (Source::User, folder.join("gatehook")));
    std::iter::once((Source::Managed, PathBuf::from(MANAGED))).chain(user).collect()
}

/// `gatehook.*` of a folder, then its drop-ins, by name.
fn in_folder(source: Source, folder: &Path) -> Vec<Place> {
    let main = FILE_NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    let mut drop_ins: Vec<PathBuf> = std::fs::read_dir(folder.join(DROP_INS))
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    drop_ins.retain(|path| path.is_file() && config::Format::of_path(path).is_some());
    drop_ins.sort();
    main.into_iter().chain(drop_ins).map(|path| Place { source, path }).collect()
}

/// The profile of this name.
pub(crate) fn profile(name: &str) -> Result<Profile, PolicyError> {
    Profile::from_name(name).ok_or_else(|| PolicyError::UnknownProfile(name.to_owned()))
}

/// What is read, and how.
pub(crate) struct Reading<'a> {
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) profile: Profile,
    pub(crate) places: Vec<Place>,
    /// Whether the variables of [`config::OLLAMA_VARIABLES`] speak too.
    pub(crate) environment: bool,
}

impl<'a> Reading<'a> {
    /// The files that the user named, else all that `serve` would read: the usual places, `GATEHOOK_CONFIG`, and the
    /// environment.
    pub(crate) fn of(named: &[PathBuf], dialect: &str, env: &'a BTreeMap<String, String>) -> Result<Self, PolicyError> {
        let profile = profile(dialect)?;
        if named.is_empty() {
            // A foreign contract has files of its own; these are none of them.
            let profile = if profile.spec().is_foreign { Profile::Native } else { profile };
            let config = env.get("GATEHOOK_CONFIG").filter(|path| !path.is_empty()).map(Path::new);
            return Ok(Self { env, profile, places: usual_places(env, config), environment: true });
        }
        let places = named.iter().map(|path| Place { source: Source::User, path: path.clone() });
        Ok(Self { env, profile, places: places.collect(), environment: false })
    }

    /// What all of it says, or everything that is wrong with any of it. Hooks add up; of settings the last word stands.
    pub(crate) fn policy(&self) -> Result<Policy, PolicyError> {
        let mut policy = Policy::default();
        let mut errors = Vec::new();
        for place in &self.places {
            match self.file(place) {
                Ok((file, stronger)) => {
                    policy.hooks.groups.extend(file.hooks.groups);
                    policy.max_concurrent_hooks = file.max_concurrent_hooks.or(policy.max_concurrent_hooks);
                    policy.settings = stronger.or(policy.settings);
                }
                Err(error) => errors.push(error),
            }
        }
        match if self.environment { config::ollama_env(self.env) } else { Ok(None) } {
            Ok(hooks) => policy.hooks.groups.extend(hooks.unwrap_or_default().groups),
            Err(error) => errors.push(error),
        }
        if errors.is_empty() {
            return Ok(policy);
        }
        Err(PolicyError::Unusable { files: errors, hooks: policy.faults(&handler_env(self.env)?) })
    }

    /// What one file says to the engine and to the gateway.
    fn file(&self, place: &Place) -> Result<(config::File, Settings), ConfigError> {
        let builtins = registry().builtin_names();
        let builtins: Vec<&str> = builtins.iter().map(String::as_str).collect();
        let folder = place.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let options = ReadOptions {
            profile: self.profile,
            source: place.source,
            working_dir: folder.to_owned(),
            env: self.env,
            builtins: Some(&builtins),
            file: Some(Arc::new(place.path.clone())),
            ..ReadOptions::default()
        };
        let document = Document::open(&place.path)?;
        refuse_empty(&document)?;
        settings::read(&document, &options)
    }
}

/// A file without a byte is one that was cut off, by a full disk or a broken copy: it must not open what it guarded.
fn refuse_empty(document: &Document) -> Result<(), ConfigError> {
    if !document.text.trim().is_empty() {
        return Ok(());
    }
    let problem = Diagnostic::new(DiagnosticKind::InvalidValue, "", "the file is empty");
    let problem = problem.help("write `hooks: {}` where nothing is meant, or remove the file");
    Err(ConfigError::one(&document.name, &document.text, problem))
}

impl Policy {
    /// Puts the hooks into force, or says what is wrong with each that cannot be.
    pub(crate) fn executor(&self, env: &BTreeMap<String, String>) -> Result<Executor, PolicyError> {
        let env = handler_env(env)?;
        let mut options = Options::default();
        options.max_concurrent_hooks = self.max_concurrent_hooks.unwrap_or(options.max_concurrent_hooks);
        let built = Executor::with_options(self.hooks.clone(), env.clone(), &registry(), options);
        built.map_err(|first| {
            let each = self.faults(&env);
            PolicyError::Unusable { files: Vec::new(), hooks: if each.is_empty() { vec![first] } else { each } }
        })
    }

    /// What is wrong with each hook by itself.
    fn faults(&self, env: &HandlerEnv) -> Vec<BuildError> {
        let registry = registry();
        let build = |hook| Executor::with_registry(hook, env.clone(), &registry).err();
        self.each_hook().filter_map(build).collect()
    }

    /// Every hook as a configuration of its own.
    fn each_hook(&self) -> impl Iterator<Item = HooksConfig> {
        self.hooks.groups.iter().flat_map(|group| {
            group.hooks.iter().map(|hook| {
                let (matcher, hooks) = (group.matcher.clone(), vec![hook.clone()]);
                HooksConfig { groups: vec![HookGroup { event: group.event, matcher, hooks }] }
            })
        })
    }
}

/// The engine's own handlers and builtins, and the foreign contracts.
pub(crate) fn registry() -> Registry {
    let registry = Registry::with_defaults();
    gatehook_dialects::all().into_iter().for_each(|dialect| registry.register_dialect(dialect));
    registry
}

fn handler_env(env: &BTreeMap<String, String>) -> std::io::Result<HandlerEnv> {
    Ok(HandlerEnv { working_dir: std::env::current_dir()?, env: env.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folders_main_file_comes_before_its_drop_ins_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("hooks.d/folder.yaml")).unwrap();
        for name in ["hooks.d/20.json", "hooks.d/10.toml", "hooks.d/readme.txt", "gatehook.toml", "other.yaml"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = in_folder(Source::Managed, folder.path());
        let found: Vec<&Path> = found.iter().map(|place| place.path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(found, ["gatehook.toml", "hooks.d/10.toml", "hooks.d/20.json"].map(Path::new));
    }

    #[test]
    fn the_users_folder_is_xdgs_else_below_home() {
        let env = |variables: &[(&str, &str)]| {
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (variables, folder) in [
            (env(&[("HOME", "/h")]), Some("/h/.config/gatehook")),
            (env(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), Some("/x/gatehook")),
            (env(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]), Some("/h/.config/gatehook")),
            (env(&[]), None),
        ] {
            let user = folders(&variables).into_iter().find(|(source, _)| *source == Source::User);
            assert_eq!(user.map(|(_, folder)| folder), folder.map(PathBuf::from), "{variables:?}");
        }
    }
}

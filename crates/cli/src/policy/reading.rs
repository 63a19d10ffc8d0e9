//! Reading files: which there are, and what each says by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_agent::team::{self, TeamFile, is_part};
use gatehook_engine::HooksConfig;
use gatehook_engine::config::ollm::{self, OllmOptions};
use gatehook_engine::config::{self, ConfigError, Diagnostic, DiagnosticKind, Diagnostics, Document, ReadOptions};
use gatehook_engine::definition::{HookDefinition, Source};
use gatehook_engine::trust::{Judged, Project, judge, of_right};
use gatehook_events::Profile;
use gatehook_gateway::settings::{self, Settings};

use super::said::{Said, strength};
use super::{Policy, PolicyError, faults, handler_env, profile, registry};
use crate::owned::{Other, by_others};
use crate::places::{Place, not_a_file, usual_places};
use crate::skills::{self, Found};
use crate::trust;

/// What is read, and how.
pub(crate) struct Reading<'a> {
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) profile: Profile,
    pub(crate) places: Vec<Place>,
    /// The project whose hooks its owner may have approved; `serve` has none.
    pub(crate) project: Option<Project>,
    /// Whether the variables of [`config::OLLAMA_VARIABLES`] speak too.
    pub(crate) environment: bool,
    /// Whether agents run: then docker-agent's own files are read as a whole, and hooks of their agents are theirs.
    pub(crate) agents: bool,
}

impl<'a> Reading<'a> {
    /// The files that the user named, else all there is: the usual places, the project around the working directory,
    /// `GATEHOOK_CONFIG`, and the environment.
    pub(crate) fn of(named: &[PathBuf], dialect: &str, env: &'a BTreeMap<String, String>) -> Result<Self, PolicyError> {
        let named_profile = profile(dialect)?;
        if named.is_empty() {
            // Every contract has files of its own, which say it themselves.
            let profile = Profile::Native;
            let config = env.get("GATEHOOK_CONFIG").filter(|path| !path.is_empty()).map(Path::new);
            let project = Project::around(&std::env::current_dir()?, env)?;
            let places = usual_places(env, config, Some(project.root()));
            return Ok(Self { env, profile, places, project: Some(project), environment: true, agents: false });
        }
        let places = named.iter().map(|path| Place::named(path)).collect();
        Ok(Self { env, profile: named_profile, places, project: None, environment: false, agents: false })
    }

    /// The same for agents that run, and a file of agents that the user named beside all others.
    pub(crate) fn of_agents(
        named: &[PathBuf],
        agents: Option<&Path>,
        dialect: &str,
        env: &'a BTreeMap<String, String>,
    ) -> Result<Self, PolicyError> {
        let mut reading = Self { agents: true, ..Self::of(named, dialect, env)? };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(file) = agents {
            // Who names a file answers for it, wherever it lies.
            reading.places.retain(|place| real(&place.path) != real(file));
            reading.places.push(Place::named(file));
        }
        Ok(reading)
    }

    /// What all of it says, or everything that is wrong with any of it.
    pub(crate) fn policy(&self) -> Result<Policy, PolicyError> {
        let mut said = Said::default();
        let (mut files, mut errors) = (Vec::new(), Vec::new());
        self.places.iter().for_each(|place| self.read(place.clone(), &mut files, &mut errors));
        obey_ollm(&mut files);
        // Hooks add up, in falling order of authority; of plain settings the strongest place's stands.
        said.hooks.groups.extend(files.iter().flat_map(|(_, read)| read.file.hooks.groups.clone()));
        let mut of_agents = HooksConfig::default();
        for (_, read) in &mut files {
            of_agents.append(read.team.take_hooks());
            of_agents.append(read.team.parts());
        }
        let extensions = self.extensions(files.iter().map(|(place, _)| place));
        files.sort_by_key(|(place, _)| strength(place));
        files.into_iter().for_each(|(place, read)| said.take(&place, read));
        match if self.environment { config::ollama_env(self.env) } else { Ok(None) } {
            Ok(hooks) => said.user_hooks(hooks.unwrap_or_default()),
            Err(error) => errors.push(error),
        }
        if !errors.is_empty() {
            let env = handler_env(self.env)?;
            let hooks = faults(&said.hooks, &env, &said.registry(&env));
            return Err(PolicyError::Unusable { files: errors, hooks });
        }
        let ground = self.project.clone().map(|project| trust::ground(project, extensions, self.env));
        let skills = self.skills(&mut said);
        let mut hooks = std::mem::take(&mut said.hooks);
        hooks.append(of_agents);
        // All at once: the hash that somebody names as trusted is over all that a project brings.
        let mut judgement = match &ground {
            Some(ground) => judge(hooks, ground),
            None => of_right(hooks),
        };
        trust::switch_off(&mut judgement, self.env);
        let is_of_agents = |judged: &Judged| judged.definition.origin.agent.is_some() || is_part(&judged.definition);
        let (of_agents, hooks) = judgement.hooks.into_iter().partition(is_of_agents);
        judgement.hooks = hooks;
        let mut policy = Policy { judgement, of_agents, ground, skills, said };
        policy.settle_teams();
        Ok(policy)
    }

    /// The skills of the user and of the project. Their hooks are judged as all others are.
    fn skills(&self, said: &mut Said) -> Vec<Found> {
        let Some(project) = &self.project else { return Vec::new() };
        let builtins = registry().builtin_names();
        let builtins: Vec<&str> = builtins.iter().map(String::as_str).collect();
        let (found, notes) = skills::find(self.env, project.root(), &builtins);
        said.notes.extend(notes);
        said.hooks.groups.extend(found.iter().flat_map(|skill| skill.file.hooks.groups.clone()));
        found
    }

    /// Reads a file, and behind it what it imports.
    fn read(&self, place: Place, files: &mut Vec<(Place, Read)>, errors: &mut Vec<ConfigError>) {
        match self.file(&place) {
            Ok(file) => {
                let imports = file.file.imports.clone();
                files.push((place.clone(), file));
                for import in imports {
                    self.read(place.import(import.file, import.profile.name()), files, errors);
                }
            }
            Err(error) => errors.push(error),
        }
    }

    /// What one file says to the engine, to the gateway and of agents.
    fn file(&self, place: &Place) -> Result<Read, ConfigError> {
        let builtins = registry().builtin_names();
        let builtins: Vec<&str> = builtins.iter().map(String::as_str).collect();
        let folder = place.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Hooks of a project run in its folder, wherever their file is.
        let project = self.project.as_ref().filter(|_| place.source.needs_approval()).map(Project::root);
        let sections: Vec<&str> = team::sections().collect();
        let mut options = ReadOptions {
            profile: place.dialect.and_then(Profile::from_name).unwrap_or(self.profile),
            sections: &sections,
            source: place.source,
            working_dir: place.folder.as_deref().or(project).unwrap_or(folder).to_owned(),
            env: self.env,
            builtins: Some(&builtins),
            file: Some(Arc::new(place.path.clone())),
            ..ReadOptions::default()
        };
        let document = Self::open(place)?;
        if place.part.is_some_and(|part| document.root.get(part).is_none()) {
            return Ok(Read::of(config::File::new(&options)));
        }
        if options.profile == Profile::Ollm && !place.is_named && ollm::is_of_panel(&document) {
            let note = "a hook of `when` and `then` speaks no hook protocol, and is not run".to_owned();
            return Ok(Read::of(config::File { notes: vec![note], ..config::File::new(&options) }));
        }
        let is_own = match is_docker_agent(options.profile) {
            true => config::docker_agent::is_own(&document),
            false => place.is_named && team::is_own(&document),
        };
        // Files of other systems that are found or imported bring hooks alone.
        let is_team = is_own && self.agents && place.dialect.is_none();
        if is_team && !is_docker_agent(options.profile) {
            options.profile = Profile::DockerAgent;
        }
        let diagnostics = Diagnostics::new();
        // Its hooks are those of its agents: each has its own, and a host that runs none has those of the first.
        let mut read = match is_team {
            true => Read::of(config::File::new(&options)),
            false => {
                let (file, settings) = settings::read_parts(&document, &options, &diagnostics);
                Read { file, settings, team: TeamFile::default() }
            }
        };
        if is_team || (place.dialect.is_none() && !is_own) {
            read.team = team::read(&document, &options, &diagnostics);
        }
        let mut read = diagnostics.finish(&document, read)?;
        read.file.hooks.hooks_mut().for_each(|hook| settle(hook, place));
        read.team.agents.iter_mut().for_each(|agent| agent.hooks.hooks_mut().for_each(|hook| settle(hook, place)));
        Ok(read)
    }

    /// A file's content, where it is one. What somebody named may also be a pipe.
    fn open(place: &Place) -> Result<Document, ConfigError> {
        if let Some(other) = place.owner.and_then(|owner| by_others(&place.path, owner)) {
            return Err(refuse_others(place, &other));
        }
        let may_be_a_pipe = place.is_named && place.dialect.is_none();
        if let Some(why) = not_a_file(&place.path).filter(|_| !may_be_a_pipe) {
            let problem = Diagnostic::new(DiagnosticKind::Unreadable, "", why);
            let problem = problem.help("remove it, or put the file back that belongs there");
            return Err(ConfigError::one(&place.path.display().to_string(), "", problem));
        }
        let document = Document::open(&place.path)?;
        refuse_empty(&document)?;
        Ok(document)
    }

    /// The folders of installed extensions, each of which is approved by itself.
    fn extensions<'p>(&self, places: impl Iterator<Item = &'p Place>) -> Vec<Project> {
        let folders = places.filter(|place| place.is_installed).filter_map(|place| place.folder.as_deref());
        folders.filter_map(|folder| Project::at(folder, self.env).ok()).collect()
    }
}

/// What a file says to the engine, to the gateway, and of agents.
pub(super) struct Read {
    pub(super) file: config::File,
    pub(super) settings: Settings,
    pub(super) team: TeamFile,
}

impl Read {
    /// A file that says nothing but to the engine.
    fn of(file: config::File) -> Self {
        Self { file, settings: Settings::default(), team: TeamFile::default() }
    }
}

fn is_docker_agent(profile: Profile) -> bool {
    config::docker_agent::is_of(profile)
}

/// Lets a hook run where its program would run it.
fn settle(hook: &mut HookDefinition, place: &Place) {
    let Some(folder) = &place.folder else { return };
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let Some(folder) = folder.to_str() else { return };
    hook.working_dir.get_or_insert_with(|| folder.to_owned());
    if hook.profile == Profile::OllamaCli {
        hook.env.entry("OLLAMA_PROJECT_DIR".to_owned()).or_insert_with(|| folder.to_owned());
    }
}

/// Puts what OLLM's settings say of hooks upon those of its other files.
fn obey_ollm(files: &mut [(Place, Read)]) {
    let of_user = files.iter().filter(|(place, _)| place.source == Source::User && place.part.is_some());
    let said: Vec<(String, OllmOptions)> =
        of_user.map(|(place, read)| (place.path.display().to_string(), read.file.ollm.clone())).collect();
    for (path, options) in &said {
        files.iter_mut().for_each(|(_, read)| options.apply(&mut read.file.hooks, path));
        let note = "`trustWorkspace` is not followed: `gatehook hooks trust` approves what a workspace brings";
        for (place, Read { file, .. }) in
            files.iter_mut().map(|(place, read)| (&*place, read)).filter(|_| options.trust_workspace == Some(true))
        {
            file.notes.extend((place.path.display().to_string() == *path).then(|| note.to_owned()));
        }
    }
}

/// What others could have written is not the administrator's word.
fn refuse_others(place: &Place, Other { path, why }: &Other) -> ConfigError {
    let what = if *path == place.path { String::new() } else { format!("{}: ", path.display()) };
    let problem = Diagnostic::new(DiagnosticKind::WritableByOthers, "", format!("{what}{why}"));
    let path = path.display();
    let problem = problem.help(format!(
        "look through it, then `chown root {path}` and `chmod go-w {path}`: what is managed must be root's alone"
    ));
    ConfigError::one(&place.path.display().to_string(), "", problem)
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

//! Which hooks are in force, and why the others are not.

use std::path::{Path, PathBuf};

use gatehook_events::{Event, Profile};

use super::content::{Content, digest};
use super::ollm;
use super::project::{PROJECT_DIR, Project};
use super::seal::Seal;
use super::stamp::Stamp;
use super::store::{Approval, Approvals, ApprovedFile, StoreError};
use crate::definition::{HandlerDefinition, HookDefinition, HookGroup, HooksConfig, OnError, Origin, Source};

/// Has Python neither take a compiled module in the place of a source that was approved, nor leave one behind: a folder
/// that cannot be (<https://docs.python.org/3/using/cmdline.html#envvar-PYTHONPYCACHEPREFIX>).
const PYTHON_CACHE: (&str, &str) = ("PYTHONPYCACHEPREFIX", "/dev/null");

/// What hooks that need an approval are judged by.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Where they come from.
    pub project: Project,
    /// Their owner's approvals.
    pub approvals: Result<Approvals, StoreError>,
    /// Those of OLLM's file, which count for its hooks.
    pub ollm: Result<ollm::Approvals, StoreError>,
    /// Folders of extensions outside of the project, each with hooks of its own: they are approved once, wherever their
    /// owner works.
    pub extensions: Vec<Project>,
    /// The [`Judgement::hash`] that somebody without a terminal names as trusted.
    pub named: Option<String>,
}

impl Ground {
    /// A ground without approvals.
    pub fn new(project: Project) -> Self {
        Self {
            project,
            approvals: Ok(Approvals::default()),
            ollm: Ok(ollm::Approvals::default()),
            extensions: Vec::new(),
            named: None,
        }
    }

    /// The folder that a hook came with: that of its extension, else the project.
    fn project_of(&self, hook: &HookDefinition) -> &Project {
        let file = hook.origin.file.as_ref().and_then(|file| file.canonicalize().ok());
        let is_in = |folder: &&Project| file.as_ref().is_some_and(|file| file.starts_with(folder.root()));
        self.extensions.iter().find(is_in).unwrap_or(&self.project)
    }
}

/// Whether a hook is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Its source needs no approval.
    OfRight,
    /// It was approved.
    Approved {
        /// When.
        at: String,
        /// By whom.
        by: String,
    },
    /// OLLM's own file approves it.
    ApprovedInOllm,
    /// The hash of all hooks of its project was named.
    Named,
    /// Nobody approved it.
    NotTrusted,
    /// What was approved was another content: `the definition`, and paths of files that changed, came or went.
    Changed(Vec<String>),
    /// It cannot be approved, and why.
    Refused(Vec<String>),
    /// Nobody can tell, because approvals cannot be read.
    Unknown(StoreError),
    /// This switches it off: a variable's name, or a setting of its program.
    SwitchedOff(String),
}

impl Standing {
    /// Whether the hook may run.
    pub fn is_in_force(&self) -> bool {
        matches!(self, Self::OfRight | Self::Approved { .. } | Self::ApprovedInOllm | Self::Named)
    }

    /// In a word, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OfRight => "in_force",
            Self::Approved { .. } => "approved",
            Self::ApprovedInOllm => "approved_in_ollm",
            Self::Named => "named",
            Self::NotTrusted => "not_trusted",
            Self::Changed(_) => "changed",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
            Self::SwitchedOff(_) => "switched_off",
        }
    }

    /// Why it is not in force.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::OfRight | Self::Approved { .. } | Self::ApprovedInOllm | Self::Named => None,
            Self::NotTrusted => Some("not trusted".to_owned()),
            Self::Changed(what) => Some(format!("changed: {}", what.join(", "))),
            Self::Refused(why) => Some(format!("refused: {}", why.join("; "))),
            Self::Unknown(error) => Some(error.to_string()),
            Self::SwitchedOff(by) => Some(format!("switched off by {by}")),
        }
    }
}

/// A hook, and whether it is in force.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Its event.
    pub event: Event,
    /// Its group's matcher.
    pub matcher: String,
    /// The hook.
    pub definition: HookDefinition,
    /// The folder that it came with, which an approval names; `None` where none is needed.
    pub project: Option<Project>,
    /// Which hook of its project it is: file, event and name.
    pub id: String,
    /// What an approval covers; `None` where none is needed.
    pub content: Option<Content>,
    /// Whether it is in force.
    pub standing: Standing,
    stamps: Vec<(PathBuf, Stamp)>,
}

impl Judged {
    fn without_content(
        event: Event,
        matcher: String,
        definition: HookDefinition,
        id: String,
        standing: Standing,
    ) -> Self {
        Self { event, matcher, definition, project: None, id, content: None, standing, stamps: Vec::new() }
    }

    /// The approval of this content, where there can be one.
    pub fn approval(&self, at: &str, by: &str) -> Option<Approval> {
        let project = self.project.as_ref()?;
        let content = self.content.as_ref().filter(|content| content.is_whole())?;
        let files = content.files.iter().map(|file| ApprovedFile {
            path: file.path.clone(),
            target: file.target.clone(),
            sha256: file.sha256.clone(),
            text: file.text.clone(),
        });
        Some(Approval {
            project: project.root().to_string_lossy().into_owned(),
            hook: self.id.clone(),
            hash: content.hash.clone(),
            approved_at: at.to_owned(),
            approved_by: by.to_owned(),
            definition: content.definition.clone(),
            files: files.collect(),
        })
    }

    /// The same as OLLM keeps it, for a hook of its own.
    pub fn ollm_approval(&self) -> Option<ollm::Approval> {
        let (command, args) = ollm_command(&self.definition)?;
        let source = self.definition.origin.source.name();
        let name = self.definition.display_name();
        let hash = ollm::command_hash(&command, &args, source, None);
        Some(ollm::Approval { source: format!("{source}:none:{name}"), hash })
    }
}

/// The command of an OLLM hook as it is written, and its arguments.
fn ollm_command(hook: &HookDefinition) -> Option<(String, Vec<String>)> {
    let HandlerDefinition::Command(definition) = &hook.handler else { return None };
    let written = hook.written.as_deref()?.get("command")?.as_str()?;
    (hook.profile.name() == "ollm").then(|| (written.to_owned(), definition.args.clone()))
}

/// All hooks of some files, judged.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// In configuration order.
    pub hooks: Vec<Judged>,
    /// The hash over all that need an approval; `None` where none does.
    pub hash: Option<String>,
}

/// A hook that somebody with authority requires to be in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Required {
    /// The event that it guards.
    pub event: Event,
    /// Its name.
    pub name: String,
    /// Where it is required.
    pub origin: Origin,
}

/// Judges hooks of one project, and of those who need no approval. Reads the files that the hooks name.
pub fn judge(hooks: HooksConfig, ground: &Ground) -> Judgement {
    let mut judged: Vec<Judged> = Vec::new();
    for group in hooks.groups {
        for definition in group.hooks {
            let project = ground.project_of(&definition);
            let id = id(group.event, &definition, project);
            let is_twin = |it: &&Judged| {
                let root = it.project.as_ref().map_or(ground.project.root(), Project::root);
                root == project.root() && (it.id == id || it.id.starts_with(&format!("{id} #")))
            };
            let twins = judged.iter().filter(is_twin).count();
            let id = if twins > 0 { format!("{id} #{}", twins + 1) } else { id };
            judged.push(look(group.event, group.matcher.clone(), definition, id, ground));
        }
    }
    let hashes: Vec<&str> = judged.iter().filter_map(|it| Some(it.content.as_ref()?.hash.as_str())).collect();
    let hash = (!hashes.is_empty()).then(|| digest(hashes.join("\n").as_bytes()));
    if hash.is_some() && hash == ground.named {
        let waiting = judged.iter_mut().filter(|it| it.content.as_ref().is_some_and(Content::is_whole));
        let is_waiting = |it: &&mut Judged| !it.standing.is_in_force() && it.definition.switched_off.is_none();
        waiting.filter(is_waiting).for_each(|it| it.standing = Standing::Named);
    }
    Judgement { hooks: judged, hash }
}

/// Hooks that need no approval, where there is no project that others could come from; what would need one is refused.
pub fn of_right(hooks: HooksConfig) -> Judgement {
    let mut all = Vec::new();
    for group in hooks.groups {
        for definition in group.hooks {
            let why = "it comes from no project".to_owned();
            let needed = definition.origin.source.needs_approval();
            let standing = if needed { Standing::Refused(vec![why]) } else { Standing::OfRight };
            let standing = switched_off(&definition).unwrap_or(standing);
            let (event, matcher) = (group.event, group.matcher.clone());
            all.push(Judged::without_content(event, matcher, definition, String::new(), standing));
        }
    }
    Judgement { hooks: all, hash: None }
}

fn id(event: Event, definition: &HookDefinition, project: &Project) -> String {
    let file = definition.origin.file.as_ref().map(|file| project.shown(file)).unwrap_or_default();
    format!("{file}: {} {}", event.name(), definition.display_name())
}

fn look(event: Event, matcher: String, mut definition: HookDefinition, id: String, ground: &Ground) -> Judged {
    if !definition.origin.source.needs_approval() {
        let standing = switched_off(&definition).unwrap_or(Standing::OfRight);
        return Judged::without_content(event, matcher, definition, id, standing);
    }
    let project = ground.project_of(&definition);
    place(&mut definition, project);
    let working_dir = project.working_dir(&definition);
    let (mut content, collected) = Content::collected(event, &matcher, &definition, project);
    match working_dir.to_str().filter(|dir| !definition.profile.spec().expands_references || !dir.contains('$')) {
        Some(dir) => definition.working_dir = Some(dir.to_owned()),
        None => content.refusals.push("the name of its working directory cannot be passed on".to_owned()),
    }
    if content.files.iter().any(|file| file.path.ends_with(".py")) {
        definition.env.entry(PYTHON_CACHE.0.to_owned()).or_insert_with(|| PYTHON_CACHE.1.to_owned());
    }
    let standing = switched_off(&definition).unwrap_or_else(|| standing(&id, &definition, &content, (ground, project)));
    let (project, content) = (Some(project.clone()), Some(content));
    Judged { event, matcher, definition, project, id, content, standing, stamps: collected.stamps }
}

fn switched_off(definition: &HookDefinition) -> Option<Standing> {
    definition.switched_off.as_deref().map(|by| Standing::SwitchedOff(by.to_owned()))
}

/// Lets a hook find the folder that was looked at, and no other, by the variables of its contract: what runs must be what
/// was approved, wherever somebody works.
fn place(definition: &mut HookDefinition, project: &Project) {
    let Some(root) = project.root().to_str() else { return };
    let mut put = |name: &str| definition.env.entry(name.to_owned()).or_insert_with(|| root.to_owned()).clone();
    put(PROJECT_DIR);
    if definition.profile == Profile::OllamaCli {
        put("OLLAMA_PROJECT_DIR");
    }
}

fn standing(
    id: &str,
    definition: &HookDefinition,
    content: &Content,
    (ground, project): (&Ground, &Project),
) -> Standing {
    if !content.is_whole() {
        return Standing::Refused(content.refusals.clone());
    }
    let root = project.root();
    let approvals = match &ground.approvals {
        Ok(approvals) => approvals,
        Err(error) => return Standing::Unknown(error.clone()),
    };
    if let Some(Approval { approved_at, approved_by, .. }) = approvals.of(root, &content.hash) {
        return Standing::Approved { at: approved_at.clone(), by: approved_by.clone() };
    }
    match &ground.ollm {
        Ok(approvals) if approves(approvals, definition, content, project) => return Standing::ApprovedInOllm,
        Err(error) if ollm_command(definition).is_some() => return Standing::Unknown(error.clone()),
        _ => {}
    }
    match approvals.last(root, id) {
        Some(last) => Standing::Changed(changes(last, content)),
        None => Standing::NotTrusted,
    }
}

/// Whether OLLM's approvals cover all of a hook: its words where it names no file of the project, a script's bytes where
/// it is that script without arguments.
fn approves(approvals: &ollm::Approvals, hook: &HookDefinition, content: &Content, project: &Project) -> bool {
    let Some((command, args)) = ollm_command(hook) else { return false };
    let source = hook.origin.source.name();
    match content.files.as_slice() {
        [] => {
            let hash = ollm::command_hash(&command, &args, source, None);
            approvals.has(&format!("{source}:none:{}", hook.display_name()), &hash)
        }
        [script] if args.is_empty() => {
            let is_script = project.working_dir(hook).join(&command) == project.root().join(&script.path);
            let path = project.root().join(&script.path);
            is_script && approvals.has(&path.to_string_lossy(), &format!("sha256:{}", script.sha256))
        }
        _ => false,
    }
}

/// What is another since an approval.
fn changes(last: &Approval, content: &Content) -> Vec<String> {
    let mut changes = Vec::new();
    if last.definition != content.definition {
        changes.push("the definition".to_owned());
    }
    for file in &content.files {
        let before = last.files.iter().find(|before| before.path == file.path);
        if before.is_none_or(|before| before.sha256 != file.sha256 || before.target != file.target) {
            changes.push(file.path.clone());
        }
    }
    let gone = last.files.iter().filter(|before| content.files.iter().all(|file| file.path != before.path));
    changes.extend(gone.map(|before| before.path.clone()));
    changes
}

impl Judgement {
    /// The hooks in force, each under its seal, and in the place of each required one that is not something that blocks
    /// its event. A required hook that cannot judge blocks too, whatever its `on_error` says.
    pub fn in_force(&self, required: &[Required]) -> HooksConfig {
        let mut config = HooksConfig::default();
        for required in self.missing(required) {
            let group = HookGroup { event: required.0.event, matcher: String::new(), hooks: vec![absent(required)] };
            config.groups.push(group);
        }
        let is_standing = |judged: &&Judged| judged.definition.origin.skill.is_none();
        for judged in self.hooks.iter().filter(|judged| judged.standing.is_in_force()).filter(is_standing) {
            let mut hook = judged.definition.clone();
            if required.iter().any(|required| required.is(judged)) {
                hook.on_error = Some(OnError::Block);
            }
            hook.seal = Self::seal(judged);
            config.groups.push(HookGroup { event: judged.event, matcher: judged.matcher.clone(), hooks: vec![hook] });
        }
        config
    }

    /// The hooks of a skill's file that are in force while the skill is followed, each under its seal.
    pub fn of_skill(&self, file: &Path) -> HooksConfig {
        let of_file = |judged: &&Judged| {
            let origin = &judged.definition.origin;
            origin.skill.is_some() && origin.file.as_deref().is_some_and(|path| path == file)
        };
        let in_force = self.hooks.iter().filter(of_file).filter(|judged| judged.standing.is_in_force());
        let group = |judged: &Judged| {
            let hook = HookDefinition { seal: Self::seal(judged), ..judged.definition.clone() };
            HookGroup { event: judged.event, matcher: judged.matcher.clone(), hooks: vec![hook] }
        };
        HooksConfig { groups: in_force.map(group).collect() }
    }

    /// Takes the hooks of a profile out of force, as a variable of this name says. What the administrator put into force
    /// stays.
    pub fn switch_off(&mut self, profile: &str, variable: &str) {
        for judged in &mut self.hooks {
            let definition = &judged.definition;
            if definition.profile.name() == profile && definition.origin.source != Source::Managed {
                judged.standing = Standing::SwitchedOff(variable.to_owned());
            }
        }
    }

    /// What must still hold when something of `judged` runs; `None` where no approval is needed.
    pub fn seal(judged: &Judged) -> Option<Seal> {
        let (project, hash) = (judged.project.as_ref()?, &judged.content.as_ref()?.hash);
        let stamps = judged.stamps.clone();
        Some(Seal::content(judged.event, &judged.matcher, &judged.definition, project, hash, stamps))
    }

    /// The required hooks that are not in force, each with why.
    pub fn missing<'r>(&self, required: &'r [Required]) -> Vec<(&'r Required, String)> {
        let of = |required: &'r Required| {
            let mut found = self.hooks.iter().filter(|judged| required.is(judged)).peekable();
            if found.peek().is_none() {
                return Some((required, "there is none".to_owned()));
            }
            let mut why = None;
            for judged in found {
                why = Some(judged.standing.why()?);
            }
            Some((required, why?))
        };
        required.iter().filter_map(of).collect()
    }
}

impl Required {
    fn is(&self, judged: &Judged) -> bool {
        let event = judged.event.public_name() == self.event.public_name();
        // What is in force at times guards nothing at the others.
        let is_standing = judged.definition.origin.skill.is_none();
        event && is_standing && judged.definition.display_name() == self.name
    }
}

/// What stands in the place of a required hook.
fn absent((required, why): (&Required, String)) -> HookDefinition {
    let handler = HandlerDefinition::Other { kind: "required".to_owned(), fields: serde_json::Map::new() };
    HookDefinition {
        name: Some(required.name.clone()),
        on_error: Some(OnError::Block),
        seal: Some(Seal::absent(format!("it is required and not in force: {why}"))),
        origin: required.origin.clone(),
        ..HookDefinition::new(Profile::Native, handler)
    }
}

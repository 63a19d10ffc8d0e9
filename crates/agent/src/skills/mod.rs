//! Skills: what somebody wrote down once for an agent to follow when it is needed, each a folder with a `SKILL.md`
//! (<https://agentskills.io/specification>).
//!
//! The model follows one by the tool `skill`, the user by `/name arguments` at the beginning of a prompt; both raise
//! `skill_trigger`. A skill may bring hooks of its own, which are in force from then on until the agent is done.
//! `read`: the file.

mod read;

use std::path::Path;
use std::sync::Arc;

use gatehook_engine::Executor;

pub use read::{MAX_BYTES, SkillFile, read};

/// A skill, ready to be followed.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Its name.
    pub name: Arc<str>,
    /// What it is good for.
    pub description: Arc<str>,
    /// Its `SKILL.md`.
    pub path: Arc<Path>,
    /// What an agent is to do.
    pub text: Arc<str>,
    /// The model is told of it, and may follow it unasked.
    pub is_listed: bool,
    /// Its hooks, in force while it is followed.
    pub hooks: Option<Executor>,
    /// Why it has hooks that are not in force.
    pub note: Option<Arc<str>>,
}

/// The skills that there are, each name once.
#[derive(Debug, Clone, Default)]
pub struct Skills(Arc<[Arc<Skill>]>);

impl Skills {
    /// Of equal names the first is meant.
    pub fn new(skills: Vec<Skill>) -> Self {
        let mut all: Vec<Arc<Skill>> = Vec::with_capacity(skills.len());
        for skill in skills {
            if all.iter().all(|known| known.name != skill.name) {
                all.push(Arc::new(skill));
            }
        }
        Self(all.into())
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.0.iter()
    }

    /// The skill that a prompt begins with, as in `/deploy to staging`, and its arguments.
    ///
    /// ```
    /// use gatehook_agent::skills::{Skill, Skills};
    ///
    /// let deploy = Skill {
    ///     name: "deploy".into(),
    ///     description: "Deploys the site.".into(),
    ///     path: std::path::Path::new("SKILL.md").into(),
    ///     text: "Build, then copy.".into(),
    ///     is_listed: true,
    ///     hooks: None,
    ///     note: None,
    /// };
    /// let skills = Skills::new(vec![deploy]);
    /// let called = |prompt| skills.called(prompt).map(|(skill, args)| (skill.name.to_string(), args));
    /// assert_eq!(called("/deploy to staging\n"), Some(("deploy".to_owned(), "to staging")));
    /// assert_eq!(called("/etc/hosts is wrong"), None);
    /// ```
    pub fn called<'p>(&self, prompt: &'p str) -> Option<(&Arc<Skill>, &'p str)> {
        let called = prompt.strip_prefix('/')?;
        let (name, args) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
        let skill = self.all().find(|skill| &*skill.name == name)?;
        Some((skill, args.trim()))
    }
}

impl Skill {
    /// What a model is told that follows it.
    pub fn told(&self, args: &str) -> String {
        let folder = self.path.parent().unwrap_or(&self.path).display();
        let mut told = format!("Follow the skill {}. Its folder is {folder}.", self.name);
        if !args.trim().is_empty() {
            told.push_str("\nArguments: ");
            told.push_str(args.trim());
        }
        told.push_str("\n\n");
        told.push_str(self.text.trim());
        told
    }
}

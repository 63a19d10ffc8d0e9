//! Preparing a project: `setup` is raised, and what its hooks write becomes the environment of later hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gatehook_engine::definition::Source;
use gatehook_events::{Event, Input, OutcomeKind, Verdict};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{Policy, PolicyError};
use crate::print::Printer;
use crate::raising;
use crate::variables::{self, ENV_FILE, EnvFile, Variables};

/// How often a project is looked after where nobody says it.
pub(crate) const MAINTENANCE: Duration = Duration::from_secs(86_400);

/// Why `setup` is raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The project is new: what was kept before goes.
    Init,
    /// It is looked after: what was kept stays beside what hooks write now.
    Maintenance,
}

impl Trigger {
    /// As hooks read it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Maintenance => "maintenance",
        }
    }
}

/// What came of it.
pub(crate) struct Prepared {
    pub(crate) verdict: Verdict,
    /// What is kept now, and where; `None` where no hook could write anything.
    pub(crate) kept: Option<(PathBuf, Variables)>,
}

/// Raises `setup`, and keeps what its hooks wrote; `None` where Ctrl-C or SIGTERM came first.
pub(crate) fn prepare(
    policy: &Policy,
    trigger: Trigger,
    about: Input,
    env: &BTreeMap<String, String>,
    printer: &mut Printer,
) -> Result<Option<Prepared>, Failure> {
    let file = EnvFile::new(env)?;
    let shown = file.path().display().to_string();
    let told: BTreeMap<String, String> = ENV_FILE.iter().map(|name| ((*name).to_owned(), shown.clone())).collect();
    let executor = policy.executor_with(env, &told)?;
    let input = Input { trigger: Some(trigger.name().into()), env_file: Some(shown.into()), ..about };
    let Some(verdict) = raising::one(policy, executor, Event::Setup, &input, printer)? else { return Ok(None) };
    let kept = keep(policy, trigger, &verdict, &file, env)?;
    Ok(Some(Prepared { verdict, kept }))
}

/// The same before a session begins, where it is due: what hooks want the model to know.
pub(crate) fn prepare_if_due(
    policy: &Policy,
    interval: Duration,
    about: Input,
    env: &BTreeMap<String, String>,
    printer: &mut Printer,
) -> Result<Option<String>, Failure> {
    let Some(trigger) = due(policy, interval, env)? else { return Ok(None) };
    let prepared = match prepare(policy, trigger, about, env, printer) {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return Err(Failure::new(Exit::Stopped, "stopped while the project was prepared", None)),
        // What a hook wrote amiss is told, and asked for again the next time: it need not keep anybody from work.
        Err(failure) => {
            printer.failure(&failure);
            return Ok(None);
        }
    };
    let verdict = prepared.verdict;
    verdict.system_message.lines().for_each(|line| printer.note(line));
    let mut context = verdict.additional_context;
    for content in verdict.instruction_context.iter().filter_map(|item| item.get("content")?.as_str()) {
        context.push_str("\n\n");
        context.push_str(content);
    }
    Ok(Some(context))
}

/// Whether a project is to be prepared; never where no hook would.
fn due(policy: &Policy, interval: Duration, env: &BTreeMap<String, String>) -> Result<Option<Trigger>, Failure> {
    let Some(ground) = policy.ground.as_ref().filter(|_| policy.raises(Event::Setup)) else { return Ok(None) };
    let last = variables::prepared(ground.project.root(), env).map_err(PolicyError::from)?;
    Ok(match last {
        None => Some(Trigger::Init),
        // A clock that was set back has not made it less.
        Some(last) if last > SystemTime::now() => None,
        Some(last) => last.elapsed().is_ok_and(|age| age >= interval).then_some(Trigger::Maintenance),
    })
}

fn keep(
    policy: &Policy,
    trigger: Trigger,
    verdict: &Verdict,
    file: &EnvFile,
    env: &BTreeMap<String, String>,
) -> Result<Option<(PathBuf, Variables)>, Failure> {
    let written = file.read()?;
    let hooks = policy.judgement.hooks.iter().filter(|it| it.event == Event::Setup && it.standing.is_in_force());
    let weakest: Option<Source> = hooks.map(|judged| judged.definition.origin.source).max();
    let Some(ground) = &policy.ground else { return Ok(None) };
    let root = ground.project.root();
    if weakest.is_none() && variables::of_project(root, env).map_err(PolicyError::from)?.is_none() {
        return Ok(None);
    }
    // A hook that failed is to be asked again.
    let is_done = verdict.outcomes.iter().all(|outcome| !matches!(outcome.kind, OutcomeKind::Failed(_)));
    // Where no hook is left that could write any, those of before go too.
    let written = Variables::new(weakest.unwrap_or_default(), written);
    let kept = variables::keep(root, env, is_done, |before| match trigger {
        Trigger::Maintenance => written.or(before),
        Trigger::Init => written,
    })?;
    Ok(Some(kept))
}

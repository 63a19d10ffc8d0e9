//! What is looked at before a hook runs: whether it still is what was approved.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gatehook_events::{Event, FailureKind};

use super::content::Content;
use super::project::Project;
use super::stamp::Stamp;
use crate::definition::HookDefinition;
use crate::handler::{Handler, HandlerError, HookCall, Run};
use crate::streaming::{Scan, Streaming};

/// Ties a hook to its content. A hook whose content is another when it should run fails instead, as
/// [`FailureKind::NotTrusted`].
#[derive(Debug, Clone)]
pub struct Seal(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    /// The hook must not run at all, and why.
    Absent(String),
    Content(Box<Sealed>),
}

#[derive(Debug)]
struct Sealed {
    event: Event,
    matcher: String,
    hook: HookDefinition,
    project: Project,
    hash: String,
    stamps: Mutex<Vec<(PathBuf, Stamp)>>,
}

impl Seal {
    /// A hook that never runs: what it should do is not to be had, for this reason.
    pub(super) fn absent(why: String) -> Self {
        Self(Arc::new(Kind::Absent(why)))
    }

    /// A hook that runs while its content is this one.
    pub(super) fn content(
        event: Event,
        matcher: &str,
        hook: &HookDefinition,
        project: &Project,
        hash: &str,
        stamps: Vec<(PathBuf, Stamp)>,
    ) -> Self {
        let stamps = Mutex::new(stamps);
        let (matcher, hook, project, hash) = (matcher.to_owned(), hook.clone(), project.clone(), hash.to_owned());
        Self(Arc::new(Kind::Content(Box::new(Sealed { event, matcher, hook, project, hash, stamps }))))
    }

    /// Why the hook must not run, where it never must.
    pub fn absence(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Absent(why) => Some(why),
            Kind::Content(_) => None,
        }
    }

    /// Why what it is put on must not run any more. Reads files where some have been touched.
    pub fn check(&self) -> Result<(), HandlerError> {
        if self.is_untouched() { Ok(()) } else { self.look_again() }
    }

    /// Whether nothing that was looked at has changed: a few questions to the system, and no reading.
    fn is_untouched(&self) -> bool {
        match &*self.0 {
            Kind::Absent(_) => false,
            Kind::Content(sealed) => {
                let stamps = sealed.stamps.lock().unwrap_or_else(PoisonError::into_inner);
                stamps.iter().all(|(path, stamp)| stamp.holds(path))
            }
        }
    }

    /// Reads everything again; an error where the content is another.
    fn look_again(&self) -> Result<(), HandlerError> {
        let sealed = match &*self.0 {
            Kind::Absent(why) => return Err(HandlerError::new(FailureKind::NotTrusted, why.clone())),
            Kind::Content(sealed) => sealed,
        };
        let (content, collected) = Content::collected(sealed.event, &sealed.matcher, &sealed.hook, &sealed.project);
        if content.is_whole() && content.hash == sealed.hash {
            *sealed.stamps.lock().unwrap_or_else(PoisonError::into_inner) = collected.stamps;
            return Ok(());
        }
        Err(HandlerError::new(FailureKind::NotTrusted, "its files are not what was approved any more"))
    }
}

/// A handler under its hook's seal.
pub(crate) fn sealed(handler: Arc<dyn Handler>, seal: Option<&Seal>) -> Arc<dyn Handler> {
    match seal {
        Some(seal) => Arc::new(Under { handler, seal: seal.clone() }),
        None => handler,
    }
}

struct Under {
    handler: Arc<dyn Handler>,
    seal: Seal,
}

impl Handler for Under {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            if !self.seal.is_untouched() {
                let seal = self.seal.clone();
                let looked = tokio::task::spawn_blocking(move || seal.look_again()).await;
                looked.unwrap_or_else(|error| Err(HandlerError::new(FailureKind::NotTrusted, error.to_string())))?;
            }
            self.handler.run(call).await
        })
    }

    fn judges_by_content(&self) -> bool {
        self.handler.judges_by_content()
    }

    fn streams(&self) -> Streaming {
        self.handler.streams()
    }

    fn scan(&self) -> Option<Box<dyn Scan>> {
        self.handler.scan()
    }
}

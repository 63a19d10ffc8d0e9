//! What the tools have in common that work on files: arguments of their own, and work that blocks.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::arguments;
use super::aside::{Stop, aside};
use super::workspace::{Tried, Workspace};
use super::{Calling, Tool, ToolOutput, ToolSpec, Working};

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What such a tool does with the arguments `A`.
type Work<A> = fn(&Workspace, &A, &Stop) -> Tried<ToolOutput>;

struct OnFiles<A> {
    spec: ToolSpec,
    work: Work<A>,
}

/// A tool that does this.
pub(super) fn on_files<A: DeserializeOwned + Send + 'static>(spec: ToolSpec, work: Work<A>) -> Arc<dyn Tool> {
    Arc::new(OnFiles { spec, work })
}

impl<A: DeserializeOwned + Send + 'static> Tool for OnFiles<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        Box::pin(async move {
            let given: A = match arguments::read(call.arguments) {
                Ok(given) => given,
                Err(refused) => return refused.into(),
            };
            let (workspace, work) = (Workspace::of(call.scene), self.work);
            aside(call.cancel, PATIENCE, move |stop| work(&workspace, &given, stop)).await
        })
    }
}

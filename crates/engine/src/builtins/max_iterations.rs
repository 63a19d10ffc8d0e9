//! `max_iterations`: a cap on the model calls of one run.

use std::sync::Arc;

use gatehook_events::{Event, Input, Output};

use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

struct MaxIterations {
    /// `None` caps nothing.
    cap: Option<u64>,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let cap = match arguments.args {
        [cap] => cap.trim().parse().ok().filter(|cap| *cap > 0),
        _ => None,
    };
    if cap.is_none() && arguments.is_native() {
        return Err(Arguments::wrong("`max_iterations` takes one number above 0", "as in `args: [\"25\"]`"));
    }
    Ok(Judging::handler(MaxIterations { cap }))
}

impl Judge for MaxIterations {
    fn judge(&self, _event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let (Some(cap), Some(iteration)) = (self.cap, input.iteration) else { return Ok(None) };
        Ok((iteration > cap).then(|| Output::block(format!("the cap of {cap} model calls for one run is reached"))))
    }
}

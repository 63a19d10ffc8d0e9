//! `add_environment_info`: the model knows where it works.

use std::sync::Arc;

use gatehook_events::{Event, Input};

use super::place::Place;
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::repository;

struct AddEnvironmentInfo(Arc<Place>);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("add_environment_info")?;
    Ok(Judging::handler(AddEnvironmentInfo(Place::of(arguments)?)))
}

impl Judge for AddEnvironmentInfo {
    const READS_FILES: bool = true;

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        if !self.0.is_known(input) {
            return Ok(None);
        }
        let dir = self.0.dir(input);
        let text = format!(
            "Environment:\n- Working directory: {}\n- Git repository: {}\n- Operating system: {}\n- Architecture: \
             {}\n- Shell: {}",
            dir.display(),
            if repository::root(&dir).is_some() { "Yes" } else { "No" },
            system(std::env::consts::OS),
            architecture(std::env::consts::ARCH),
            self.0.variable("SHELL").unwrap_or("/bin/sh"),
        );
        Ok(Some(self.0.say(event, "core/environment", "Environment", text)))
    }
}

fn system(name: &'static str) -> &'static str {
    match name {
        "linux" => "Linux",
        "macos" => "macOS",
        "windows" => "Windows",
        "freebsd" => "FreeBSD",
        other => other,
    }
}

fn architecture(name: &'static str) -> &'static str {
    match name {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

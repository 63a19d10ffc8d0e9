//! The agent's own tools under the names that docker-agent has for them, so that matchers and rules of its files hold:
//! <https://docs.docker.com/ai/docker-agent/tools/filesystem/>, <https://docs.docker.com/ai/docker-agent/tools/shell/>.

use std::sync::Arc;

use gatehook_engine::events::Message;
use serde_json::{Map, Value};

use super::{Calling, Tool, ToolSpec, Working};

/// A tool's name here, its name there, and the arguments that are called otherwise there.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const ROWS: &[Row] = &[
    ("bash", "shell", &[("command", "cmd")]),
    ("read", "read_file", &[]),
    ("write", "write_file", &[]),
    ("edit", "edit_file", &[]),
    ("list", "list_directory", &[]),
    ("grep", "search_files_content", &[("pattern", "query")]),
];

/// A tool of the agent's own as docker-agent calls it; one that it does not have stays as it is.
pub fn as_docker_agent(tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
    let name = tool.spec().tool.name.clone();
    match ROWS.iter().find(|(ours, ..)| **ours == *name) {
        Some(row) => Arc::new(Called { spec: renamed(tool.spec(), row), arguments: row.2, tool }),
        None => tool,
    }
}

/// What docker-agent calls a tool of the agent's own.
pub fn name_in_docker_agent(name: &str) -> Option<&'static str> {
    ROWS.iter().find(|(ours, ..)| *ours == name).map(|(_, theirs, _)| *theirs)
}

fn renamed(spec: &ToolSpec, (_, name, arguments): &Row) -> ToolSpec {
    let mut spec = spec.clone();
    spec.tool.name = (*name).into();
    let mut parameters = (*spec.parameters).clone();
    for (ours, theirs) in *arguments {
        if let Some(properties) = parameters.get_mut("properties").and_then(Value::as_object_mut) {
            rename(properties, ours, theirs);
        }
        for required in parameters.get_mut("required").and_then(Value::as_array_mut).into_iter().flatten() {
            if required.as_str() == Some(ours) {
                *required = Value::from(*theirs);
            }
        }
    }
    spec.parameters = Arc::new(parameters);
    spec
}

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}

/// A tool under another name.
struct Called {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
    arguments: &'static [(&'static str, &'static str)],
}

impl Tool for Called {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        Box::pin(async move {
            let mut arguments = call.arguments.clone();
            for (ours, theirs) in self.arguments {
                // What hooks and people were shown is what is done: a second word for the same does not count.
                arguments.remove(*ours);
                rename(&mut arguments, theirs, ours);
            }
            self.tool.call(Calling { arguments: &arguments, ..call }).await
        })
    }

    fn recall(&self, session: &Arc<str>, messages: &[Message]) {
        self.tool.recall(session, messages);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::tools::{Scene, ToolSettings, builtin_tools};

    #[test]
    fn every_tool_of_the_table_is_there_and_keeps_what_it_is() {
        let tools = builtin_tools(&ToolSettings::default());
        for (ours, theirs, arguments) in ROWS {
            let tool = tools.iter().find(|tool| *tool.spec().tool.name == **ours).unwrap();
            let called = as_docker_agent(Arc::clone(tool));
            assert_eq!(*called.spec().tool.name, **theirs);
            assert_eq!(called.spec().tool.category, tool.spec().tool.category);
            for (ours, theirs) in *arguments {
                let properties = &called.spec().parameters["properties"];
                assert!(properties.get(ours).is_none() && properties.get(theirs).is_some(), "{properties}");
            }
        }
    }

    #[tokio::test]
    async fn what_was_shown_is_what_runs() {
        let tools = builtin_tools(&ToolSettings::default());
        let bash = tools.into_iter().find(|tool| &*tool.spec().tool.name == "bash").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene {
            session_id: "s".into(),
            workspace: folder.path().canonicalize().unwrap().into(),
            allowed: [].into(),
            shared: [].into(),
            env: Arc::new(std::env::vars().collect()),
        };
        let arguments = json!({"cmd": "echo shown", "command": "echo hidden"});
        let cancel = CancellationToken::new();
        let arguments = arguments.as_object().unwrap();
        let call = Calling { id: "1", arguments, scene: &scene, output: &|_| {}, cancel: &cancel };
        let output = as_docker_agent(bash).call(call).await;
        assert!(output.text.contains("shown") && !output.text.contains("hidden"), "{output:?}");
    }
}

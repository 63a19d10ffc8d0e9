//! What all tools have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;

/// A workspace in a folder of its own, with something beside it that nobody may touch.
pub(super) struct Stage {
    _dir: tempfile::TempDir,
    pub(super) scene: Scene,
    /// A folder beside the workspace.
    pub(super) outside: PathBuf,
    pub(super) said: Arc<Mutex<String>>,
    pub(super) cancel: CancellationToken,
}

impl Stage {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir_in(base()).unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (workspace, outside) = (top.join("workspace"), top.join("outside"));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "the secret\n").unwrap();
        let env = std::env::vars().filter(|(name, _)| name == "PATH").collect();
        let scene = Scene {
            session_id: "s".into(),
            workspace: workspace.into(),
            allowed: Arc::from([]),
            shared: Arc::from([]),
            env: Arc::new(env),
        };
        Self { _dir: dir, scene, outside, said: Arc::default(), cancel: CancellationToken::new() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scene.workspace.join(name)
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn env(&mut self, name: &str, value: &str) {
        let mut env = BTreeMap::clone(&self.scene.env);
        env.insert(name.to_owned(), value.to_owned());
        self.scene.env = Arc::new(env);
    }

    /// Calls a tool of this stage's own settings.
    pub(super) async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        let tools = builtin_tools(&ToolSettings::default());
        self.call_of(find(&tools, name), arguments).await
    }

    pub(super) async fn call_of(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
        let said = Arc::clone(&self.said);
        let output = move |piece: &str| said.lock().unwrap().push_str(piece);
        let arguments = arguments.as_object().unwrap().clone();
        let calling =
            Calling { id: "c", arguments: &arguments, scene: &self.scene, output: &output, cancel: &self.cancel };
        tokio::time::timeout(Duration::from_secs(100), tool.call(calling)).await.expect("a call that never ends")
    }

    /// Calls it, and it works.
    pub(super) async fn done(&self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments.clone()).await;
        assert_eq!(output.error, None, "{name} {arguments}: {}", output.text);
        output.text
    }

    /// Calls it, and it is refused.
    pub(super) async fn refused(&self, name: &str, arguments: Value) -> (ToolErrorKind, String) {
        let output = self.call(name, arguments.clone()).await;
        let kind = output.error.unwrap_or_else(|| panic!("{name} {arguments}: {}", output.text));
        assert!(output.changes.is_empty() && output.diff.is_none(), "{name} {arguments}");
        (kind, output.text)
    }
}

/// Not in `/tmp`, which the sandbox leaves open, nor where somebody has put this repository there.
fn base() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp");
    std::fs::create_dir_all(&beside).unwrap();
    let is_open = |folder: &Path| folder.canonicalize().unwrap().starts_with("/tmp");
    if is_open(&beside) { PathBuf::from("/var/tmp") } else { beside }
}

pub(super) fn find<'t>(tools: &'t [Arc<dyn Tool>], name: &str) -> &'t dyn Tool {
    tools.iter().find(|tool| &*tool.spec().tool.name == name).unwrap().as_ref()
}

#[test]
fn every_tool_says_what_it_is() {
    for tool in builtin_tools(&ToolSettings::default()) {
        let ToolSpec { tool, description, parameters } = tool.spec();
        assert!(tool.category.is_some() && !description.contains("  "), "{tool:?}: {description}");
        assert!(!(tool.read_only && tool.destructive), "{tool:?}");
        assert_eq!(parameters["type"], "object", "{tool:?}");
        let properties = parameters["properties"].as_object().unwrap();
        for required in parameters["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{tool:?}");
        }
    }
}

#[test]
fn every_tool_is_in_one_toolset() {
    let of_sets: Vec<_> = toolsets().flat_map(|name| toolset(name).unwrap()).collect();
    let tools = builtin_tools(&ToolSettings::default());
    assert_eq!(of_sets.len(), tools.len());
    for tool in &tools {
        let tool = &tool.spec().tool;
        let set = toolset(tool.category.as_deref().unwrap()).unwrap();
        assert!(set.contains(&&*tool.name), "{tool:?}");
    }
    assert!(crate::team::fields::BUILTIN.into_iter().eq(toolsets()), "the configuration names the same");
    assert_eq!(toolset("mcp"), None);
}

#[tokio::test]
async fn every_argument_that_a_tool_names_is_one_that_it_takes() {
    let stage = Stage::new();
    let tools = builtin_tools(&ToolSettings::default());
    for tool in &tools {
        let spec = tool.spec();
        for (argument, _) in spec.parameters["properties"].as_object().unwrap() {
            let output = stage.call_of(tool.as_ref(), json!({ argument: {"no": "such"} })).await;
            assert_eq!(output.error, Some(ToolErrorKind::InvalidInput), "{} {argument}", spec.tool.name);
            assert!(!output.text.contains("unknown field"), "{}: {}", spec.tool.name, output.text);
        }
        let output = stage.call_of(tool.as_ref(), json!({"surely_unknown": 1})).await;
        assert_eq!(output.error, Some(ToolErrorKind::InvalidInput));
        assert!(output.text.contains("unknown field `surely_unknown`"), "{}: {}", spec.tool.name, output.text);
    }
}

#[test]
fn the_configuration_opens_what_is_closed() {
    let said = |sandbox, private_addresses| crate::team::Defaults { sandbox, private_addresses, ..Default::default() };
    assert_eq!(ToolSettings::from(&said(None, None)), ToolSettings::default());
    assert_eq!(ToolSettings::from(&said(Some(true), Some(false))), ToolSettings::default());
    let open = ToolSettings { sandbox: Sandboxing::Off, reach: gatehook_engine::client::Reach::Any };
    assert_eq!(ToolSettings::from(&said(Some(false), Some(true))), open);
}

#[tokio::test]
async fn a_list_is_kept_for_each_session() {
    let tools = builtin_tools(&ToolSettings::default());
    let todo = find(&tools, "todo");
    let (mut one, other) = (Stage::new(), Stage::new());
    one.scene.session_id = "another".into();
    let items = json!({"items": [{"text": "read", "status": "done"}, {"text": "write", "status": "in_progress"}, {"text": "rest"}]});
    let shown = "[x] read\n[~] write\n[ ] rest\n";
    assert_eq!(one.call_of(todo, items).await.text, shown);
    assert_eq!(one.call_of(todo, json!({})).await.text, shown);
    assert_eq!(other.call_of(todo, json!({})).await.text, "(the list is empty)");
    for wrong in [json!([{"text": " "}]), json!([{"text": "a", "status": "never"}]), json!("read")] {
        let output = one.call_of(todo, json!({ "items": wrong })).await;
        assert_eq!(output.error, Some(ToolErrorKind::InvalidInput), "{wrong}");
    }
    assert_eq!(one.call_of(todo, json!({})).await.text, shown);
    assert_eq!(one.call_of(todo, json!({"items": []})).await.text, "(the list is empty)");
}

#[tokio::test]
async fn a_thought_comes_back() {
    assert_eq!(Stage::new().done("think", json!({"thought": "so it is"})).await, "so it is");
}

#[tokio::test]
async fn a_file_is_read_with_its_lines_numbered() {
    let stage = Stage::new();
    stage.write("a.txt", "one\ntwo\r\nthree");
    assert_eq!(
        stage.done("read", json!({"path": "a.txt"})).await,
        "     1\tone\n     2\ttwo\n     3\tthree\n(lines end in \\r\\n)\n"
    );
    let part = stage.done("read", json!({"path": "a.txt", "offset": 2.0, "limit": 1})).await;
    assert_eq!(part, "     2\ttwo\n(more follows, of 14 bytes in all: go on with offset 3)\n(lines end in \\r\\n)\n");
    let (kind, text) = stage.refused("read", json!({"path": "a.txt", "offset": 9})).await;
    assert_eq!((kind, text.as_str()), (ToolErrorKind::InvalidInput, "a.txt has 3 lines: there is no line 9"));
    stage.write("empty", "");
    assert_eq!(stage.done("read", json!({"path": "empty"})).await, "(empty is empty)");
    assert_eq!(stage.refused("read", json!({"path": "none"})).await.0, ToolErrorKind::NotFound);
    assert_eq!(stage.refused("read", json!({"path": "a.txt/b"})).await.0, ToolErrorKind::NotFound);
    assert!(stage.refused("read", json!({"path": "."})).await.1.contains("use `list`"));
}

#[tokio::test]
async fn a_long_file_comes_in_parts_that_come_together() {
    let stage = Stage::new();
    let lines: Vec<String> = (1..=4000).map(|number| format!("{number} {}", "x".repeat(number % 90))).collect();
    stage.write("long", lines.join("\n"));
    let (mut offset, mut read) = (1, Vec::new());
    loop {
        let text = stage.done("read", json!({"path": "long", "offset": offset})).await;
        assert!(text.len() < 50 << 10, "{}", text.len());
        read.extend(text.lines().filter_map(|line| Some(line.split_once('\t')?.1.to_owned())));
        let Some((_, next)) = text.rsplit_once("go on with offset ") else { break };
        offset = next.trim_end_matches(")\n").parse().unwrap();
    }
    assert_eq!(read, lines);
}

#[tokio::test]
async fn huge_and_odd_files_are_read_within_bounds() {
    let stage = Stage::new();
    let file = std::fs::File::create(stage.path("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    let (kind, text) = stage.refused("read", json!({"path": "sparse"})).await;
    assert_eq!(kind, ToolErrorKind::InvalidInput);
    assert!(text.contains("binary data of 1099511627776 bytes"), "{text}");
    stage.write("wide", format!("{}\nnext\n", "ü".repeat(500_000)));
    let text = stage.done("read", json!({"path": "wide"})).await;
    assert!(text.contains("ü… (998000 more bytes)\n     2\tnext\n") && !text.contains("UTF-8"), "{}", text.len());
    stage.write("latin", b"caf\xe9\n");
    assert_eq!(
        stage.done("read", json!({"path": "latin"})).await,
        "     1\tcaf\u{fffd}\n(not all of it is UTF-8: \u{fffd} stands for other bytes)\n"
    );
    stage.write("a.png", b"\x89PNG\r\n\x1a\n1234");
    assert_eq!(
        stage.done("read", json!({"path": "a.png"})).await,
        "a.png is a PNG image of 12 bytes: it has no lines to show"
    );
    assert!(
        stage
            .refused("edit", json!({"path": "sparse", "old_string": "a", "new_string": "b"}))
            .await
            .1
            .contains("too many")
    );
}

#[tokio::test]
async fn lines_are_found_with_what_stands_around_them() {
    let stage = Stage::new();
    stage.write("src/a.rs", "one\ntwo Needle\nthree\nfour\nfive needle\nsix\n");
    stage.write("b.txt", "needle\n");
    stage.write("binary", b"needle\0");
    let found = stage.done("grep", json!({"pattern": "n[e]+dle"})).await;
    assert_eq!(found, "b.txt\n     1: needle\nsrc/a.rs\n     5: five needle\n");
    let found =
        stage.done("grep", json!({"pattern": "needle", "path": "src", "ignore_case": true, "context": 1})).await;
    let expected =
        "src/a.rs\n     1- one\n     2: two Needle\n     3- three\n     4- four\n     5: five needle\n     6- six\n";
    assert_eq!(found, expected);
    let found = stage.done("grep", json!({"pattern": "one|six", "path": "src/a.rs", "context": 1})).await;
    assert_eq!(found, "src/a.rs\n     1: one\n     2- two Needle\n  --\n     5- five needle\n     6: six\n");
    assert_eq!(
        stage.done("grep", json!({"pattern": "needle", "include": "*.{md,txt}"})).await,
        "b.txt\n     1: needle\n"
    );
    assert_eq!(stage.done("grep", json!({"pattern": "nowhere"})).await, "(no line fits)\n");
    let limited = stage.done("grep", json!({"pattern": ".", "limit": 1})).await;
    assert!(limited.starts_with("b.txt\n     1: needle\n(there may be more"), "{limited}");
    for wrong in [
        json!({"pattern": "("}),
        json!({"pattern": ""}),
        json!({"pattern": "(x{1000}){1000}"}),
        json!({"pattern": "x", "include": "../*"}),
    ] {
        assert_eq!(stage.refused("grep", wrong.clone()).await.0, ToolErrorKind::InvalidInput, "{wrong}");
    }
    stage.write("wide", format!("{}needle{}", "ä".repeat(5000), "b".repeat(5000)));
    let wide = stage.done("grep", json!({"pattern": "needle", "path": "wide"})).await;
    assert!(wide.contains("needle") && wide.len() < 1000, "{wide}");
}

#[tokio::test]
async fn a_folders_search_passes_over_what_is_protected() {
    let stage = Stage::new();
    stage.write("certs/server.pem", "needle\n");
    stage.write("certs/other.pem", "nothing\n");
    stage.write("a.txt", "needle\n");
    let found = stage.done("grep", json!({"pattern": "needle"})).await;
    assert_eq!(found, "a.txt\n     1: needle\n(1 protected files were passed over)\n");
    // Whether it may be named is what `protect_files` is asked.
    assert!(stage.done("grep", json!({"pattern": "needle", "path": "certs/server.pem"})).await.contains("1: needle"));
}

#[test]
fn the_documentation_names_every_tool() {
    let page = include_str!("../../../../docs/agent.md");
    for tool in builtin_tools(&ToolSettings::default()) {
        let approval::Tool { name, category, read_only, destructive, .. } = &tool.spec().tool;
        let effect = if *read_only {
            "reads"
        } else if *destructive {
            "destructive"
        } else {
            "changes"
        };
        let row = format!("| `{name}` | `{}` | {effect} |", category.as_deref().unwrap());
        assert!(page.contains(&row), "docs/agent.md has no row `{row}`");
    }
}

#[tokio::test]
async fn what_is_found_is_bounded() {
    let stage = Stage::new();
    for number in 0..600 {
        stage.write(&format!("many/{number:03}.txt"), "line\n".repeat(3));
    }
    let found = stage.done("grep", json!({"pattern": "line"})).await;
    assert_eq!(found.matches(": line").count(), 200);
    let names = stage.done("glob", json!({"pattern": "*.txt"})).await;
    assert!(
        names.lines().count() == 501 && names.ends_with("(there are more than 500: narrow the pattern or the path)\n")
    );
    let tree = stage.done("list", json!({})).await;
    assert!(tree.contains("    199.txt\n") && tree.contains("    (400 more)\n") && !tree.contains("200.txt"), "{tree}");
}

#[tokio::test]
async fn files_are_found_by_name() {
    let stage = Stage::new();
    for file in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.ts", ".github/ci.yml"] {
        stage.write(file, "");
    }
    for (pattern, path, expected) in [
        ("*.rs", ".", "a.rs\nsrc/b.rs\nsrc/deep/c.rs\n"),
        ("src/*.rs", ".", "src/b.rs\n"),
        ("./src/**/*.{rs,ts}", ".", "src/b.rs\nsrc/d.ts\nsrc/deep/c.rs\n"),
        ("*.rs", "src/deep", "src/deep/c.rs\n"),
        ("**/*.yml", ".", "(no file fits)\n"),
        (".github/**", ".", ".github/ci.yml\n"),
    ] {
        assert_eq!(stage.done("glob", json!({"pattern": pattern, "path": path})).await, expected, "{pattern}");
    }
    for wrong in ["", "/etc/*", "../*", "a{b", "x[z-a]"] {
        assert_eq!(stage.refused("glob", json!({ "pattern": wrong })).await.0, ToolErrorKind::InvalidInput, "{wrong}");
    }
}

#[tokio::test]
async fn a_folder_is_shown_as_a_tree() {
    let stage = Stage::new();
    for file in ["b.txt", "a/one/deep/x", "a/two", ".hidden", ".git/config"] {
        stage.write(file, "");
    }
    assert_eq!(stage.done("list", json!({})).await, "./\n  .hidden\n  a/\n    one/\n    two\n  b.txt\n");
    assert_eq!(stage.done("list", json!({"path": "a", "depth": 1})).await, "a/\n  one/\n  two\n");
    std::fs::create_dir(stage.path("none")).unwrap();
    assert_eq!(stage.done("list", json!({"path": "none"})).await, "none/\n(nothing is in it)\n");
    assert!(stage.refused("list", json!({"path": "b.txt"})).await.1.contains("is a file"));
}

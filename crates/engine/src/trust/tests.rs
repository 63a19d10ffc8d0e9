//! What an approval covers, and what takes a hook out of force.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use gatehook_events::{Event, FailureKind, Input, OutcomeKind, Profile};
use proptest::prelude::*;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::content::canonical;
use super::ollm;
use super::store::{Approvals, Store};
use super::*;
use crate::config::{self, Format, ReadOptions};
use crate::definition::{HookDefinition, HooksConfig, Origin, Source};
use crate::{Executor, HandlerEnv};

struct World {
    folder: TempDir,
    ground: Ground,
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
        let root = folder.path().join("project");
        std::fs::create_dir(&root).unwrap();
        let world = Self { ground: Ground::new(Project::at(&root, &env).unwrap()), folder };
        files.iter().for_each(|(name, text)| world.write(name, text));
        world
    }

    fn root(&self) -> &Path {
        self.ground.project.root()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn hooks(&self, hooks: &str) -> HooksConfig {
        read(self.root(), hooks, Source::Workspace)
    }

    /// The content of one command hook.
    fn content(&self, command: &str) -> Content {
        let hook = serde_json::json!({"type": "command", "command": command});
        self.judge(&hook.to_string()).content.unwrap()
    }

    fn judge(&self, hook: &str) -> Judged {
        judge(self.hooks(&format!("pre_tool_use: [{hook}]")), &self.ground).hooks.remove(0)
    }

    fn approve(&mut self, hook: &str) {
        let approval = self.judge(hook).approval("2026-01-01T00:00:00Z", "me").unwrap();
        let approvals = self.ground.approvals.clone().unwrap();
        self.ground.approvals = Ok(approvals.with(approval));
    }

    fn executor(&self, config: HooksConfig) -> Executor {
        let env = HandlerEnv { working_dir: self.folder.path().into(), env: BTreeMap::new() };
        Executor::new(config, env).unwrap()
    }
}

fn read(root: &Path, hooks: &str, source: Source) -> HooksConfig {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    let file = Some(std::sync::Arc::new(root.join("gatehook.yaml")));
    let options = ReadOptions { source, working_dir: root.to_owned(), env: &env, file, ..ReadOptions::default() };
    config::parse("gatehook.yaml", &format!("hooks: {{{hooks}}}"), Format::Yaml, &options).unwrap().hooks
}

fn paths(content: &Content) -> Vec<&str> {
    content.files.iter().map(|file| file.path.as_str()).collect()
}

const GUARD: &str = "{type: command, command: sh guard.sh}";

#[test]
fn every_file_that_a_command_names_is_covered() {
    let world = World::new(&[
        ("guard.sh", ". ./lib.sh\n. \"$(dirname \"$0\")/more.sh\"\n"),
        ("lib.sh", ""),
        ("more.sh", ""),
        ("hooks/x.py", "import os\nfrom helper import f\nimport pkg.deep\n"),
        ("hooks/helper.py", "from . import never\n"),
        ("pkg/__init__.py", ""),
        ("pkg/deep.py", "import top\n"),
        ("top.py", ""),
        ("n.js", "const m = require('./m');\n"),
        ("m.js", ""),
        ("p.json", "{}"),
        (".env", "TOKEN=secret"),
        ("tools/run", "#!/bin/sh\n"),
        ("log.txt", ""),
    ]);
    for (command, files) in [
        ("sh guard.sh", vec!["guard.sh", "lib.sh", "more.sh"]),
        ("./guard.sh --policy=p.json", vec!["guard.sh", "lib.sh", "more.sh", "p.json"]),
        ("python3 hooks/x.py", vec!["hooks/helper.py", "hooks/x.py", "pkg/__init__.py", "pkg/deep.py", "top.py"]),
        ("python3 -m pkg.deep", vec!["pkg/__init__.py", "pkg/deep.py", "top.py"]),
        ("node n.js", vec!["m.js", "n.js"]),
        (". ./.env; \"$OLLAMA_PROJECT_DIR\"/tools/run", vec![".env", "tools/run"]),
        ("cd tools && ./run", vec!["tools/run"]),
        ("$(git rev-parse --show-toplevel)/tools/run", vec!["tools/run"]),
        ("cat tools/* | x", vec!["tools/run"]),
        ("echo no >> log.txt; tee -a log.txt", vec![]),
        ("echo '{}'", vec![]),
        ("/bin/cat /dev/null", vec![]),
    ] {
        let content = world.content(command);
        assert_eq!((paths(&content), content.refusals.clone()), (files, vec![]), "{command}");
    }
    assert_eq!(world.content(". ./.env").files[0].text, None, "what looks like a secret is not kept");
}

#[test]
fn a_program_without_a_shell_is_covered_with_its_arguments() {
    let world = World::new(&[("x.py", "import y"), ("y.py", "")]);
    let judged = world.judge("{type: command, command: /bin/sh, args: [x.py, '-m', y], shell: false}");
    assert_eq!(paths(&judged.content.unwrap()), ["x.py", "y.py"]);
}

#[test]
fn the_hash_tells_every_difference() {
    let world = World::new(&[("guard.sh", "exit 0"), ("other.sh", "exit 0")]);
    let hash = |hooks: &str| {
        let judged = judge(world.hooks(hooks), &world.ground).hooks.remove(0);
        judged.content.unwrap().hash
    };
    let hooks = [
        "pre_tool_use: [{type: command, command: sh guard.sh}]",
        "pre_tool_use: [{type: command, command: sh other.sh}]",
        "pre_tool_use: [{type: command, command: sh guard.sh, timeout: 1s}]",
        "pre_tool_use: [{type: command, command: sh guard.sh, name: x}]",
        "pre_tool_use: [{type: command, command: sh guard.sh, env: {A: b}}]",
        "pre_tool_use: [{type: command, command: sh guard.sh, when: {agent: x}}]",
        "pre_tool_use: [{matcher: a, hooks: [{type: command, command: sh guard.sh}]}]",
        "pre_tool_use: [{preempt_yolo: true, hooks: [{type: command, command: sh guard.sh}]}]",
        "tool_guard: [{type: command, command: sh guard.sh}]",
    ];
    let mut hashes: Vec<String> = hooks.iter().map(|hooks| hash(hooks)).collect();
    assert_eq!(hash(hooks[0]), hashes[0]);
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), hooks.len());
}

#[test]
fn a_file_outside_of_the_project_is_refused() {
    let world = World::new(&[("guard.sh", "")]);
    std::fs::write(world.folder.path().join("evil.sh"), "").unwrap();
    symlink(world.folder.path().join("evil.sh"), world.root().join("link.sh")).unwrap();
    symlink("nowhere", world.root().join("dangling.sh")).unwrap();
    symlink("/bin/sh", world.root().join("shell")).unwrap();
    let outside = world.folder.path().join("evil.sh").display().to_string();
    for command in ["sh ../evil.sh", "sh link.sh", "cd .. && sh evil.sh", "sh dangling.sh", outside.as_str()] {
        assert!(!world.content(command).is_whole(), "{command}");
    }
    assert!(world.content("./shell guard.sh").is_whole(), "a program of the system is named, not read");
    assert_eq!(world.judge("{type: command, command: sh ../evil.sh}").standing.name(), "refused");
}

#[test]
fn what_is_no_file_is_refused() {
    let world = World::new(&[]);
    let _socket = std::os::unix::net::UnixListener::bind(world.root().join("socket")).unwrap();
    assert!(!world.content("cat socket").is_whole());
}

#[test]
fn a_compiled_module_that_hides_its_source_is_refused() {
    let world =
        World::new(&[("x.py", "import y"), ("y.py", ""), ("__pycache__/y.cpython-312.pyc", "....\u{1}\0\0\0rest")]);
    assert!(!world.content("python3 x.py").is_whole());
    world.write("__pycache__/y.cpython-312.pyc", "....\0\0\0\0rest");
    assert!(world.content("python3 x.py").is_whole());
}

#[test]
fn any_change_asks_again_and_says_what_changed() {
    let files = [("guard.sh", "exit 0"), ("x.py", "import y"), ("y.py", ""), ("target.sh", "exit 0")];
    let python = "{type: command, command: python3 x.py}";
    type Change = fn(&World);
    let cases: [(&str, &str, Change, &[&str]); 6] = [
        (GUARD, GUARD, |world| world.write("guard.sh", "exit 1"), &["guard.sh"]),
        (GUARD, GUARD, |world| std::fs::remove_file(world.root().join("guard.sh")).unwrap(), &["guard.sh"]),
        (python, python, |world| world.write("y.py", "import os"), &["y.py"]),
        (python, python, |world| world.write("os.py", ""), &[]),
        (GUARD, "{type: command, command: sh guard.sh, timeout: 1s}", |_| {}, &["the definition"]),
        (
            GUARD,
            GUARD,
            |world| {
                std::fs::remove_file(world.root().join("guard.sh")).unwrap();
                symlink("target.sh", world.root().join("guard.sh")).unwrap();
            },
            &["guard.sh"],
        ),
    ];
    for (approved, then, change, changed) in cases {
        let mut world = World::new(&files);
        assert_eq!(world.judge(approved).standing, Standing::NotTrusted, "{approved}");
        world.approve(approved);
        assert!(world.judge(approved).standing.is_in_force(), "{approved}");
        change(&world);
        let standing = world.judge(then).standing;
        if changed.is_empty() {
            // `os` was never the project's, and the script does not import it.
            assert!(standing.is_in_force(), "{then}");
        } else {
            assert_eq!(standing, Standing::Changed(changed.iter().map(|it| (*it).to_owned()).collect()), "{then}");
        }
    }
}

#[test]
fn a_module_that_comes_to_hide_another_is_a_change() {
    let mut world = World::new(&[("x.py", "import json")]);
    let hook = "{type: command, command: python3 x.py}";
    world.approve(hook);
    world.write("json.py", "");
    assert_eq!(world.judge(hook).standing, Standing::Changed(vec!["json.py".to_owned()]));
}

#[test]
fn a_moved_project_asks_again() {
    let mut world = World::new(&[("guard.sh", "exit 0")]);
    world.approve(GUARD);
    let before = world.judge(GUARD).content.unwrap().hash;
    let moved = world.folder.path().join("moved");
    std::fs::rename(world.root(), &moved).unwrap();
    world.ground.project = Project::at(&moved, &BTreeMap::new()).unwrap();
    let judged = world.judge(GUARD);
    assert_eq!((judged.standing, judged.content.unwrap().hash), (Standing::NotTrusted, before));
}

#[test]
fn a_named_hash_covers_all_hooks_of_the_project_and_nothing_else() {
    let mut world = World::new(&[("guard.sh", "exit 0")]);
    let hooks = format!("pre_tool_use: [{GUARD}], tool_guard: [{GUARD}]");
    let judged = judge(world.hooks(&hooks), &world.ground);
    world.ground.named = judged.hash;
    let standings = |world: &World, hooks: &str| -> Vec<&str> {
        judge(world.hooks(hooks), &world.ground).hooks.iter().map(|hook| hook.standing.name()).collect()
    };
    assert_eq!(standings(&world, &hooks), ["named", "named"]);
    assert_eq!(standings(&world, &format!("pre_tool_use: [{GUARD}]")), ["not_trusted"]);
    world.write("guard.sh", "exit 2");
    assert_eq!(standings(&world, &hooks), ["not_trusted", "not_trusted"]);
}

#[test]
fn approvals_that_cannot_be_read_approve_nothing_and_stay_as_they_are() {
    let mut world = World::new(&[("guard.sh", "exit 0")]);
    let path = world.folder.path().join("state/trust.json");
    let store = Store::new(path.clone());
    assert_eq!(store.read(), Ok(Approvals::default()));
    let approval = world.judge(GUARD).approval("2026-01-01T00:00:00Z", "me").unwrap();
    store.change(|approvals| *approvals = std::mem::take(approvals).with(approval.clone())).unwrap();
    world.ground.approvals = store.read();
    assert!(world.judge(GUARD).standing.is_in_force());
    for broken in ["", "{", "[]", "{\"version\":2,\"approvals\":[]}", "{\"version\":1,\"approvals\":[],\"more\":1}"] {
        std::fs::write(&path, broken).unwrap();
        world.ground.approvals = store.read();
        assert_eq!(world.judge(GUARD).standing.name(), "unknown", "{broken}");
        assert!(store.change(|_| ()).is_err(), "{broken}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
        assert!(store.read().unwrap_err().help().contains("trust"), "{broken}");
    }
}

#[test]
fn the_store_is_its_owners_alone() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gatehook/trust.json");
    let store = Store::new(path.clone());
    store.change(|_| ()).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(store.read().unwrap_err().help().contains("chmod 600"));
}

#[test]
fn writers_at_one_time_lose_nothing() {
    let world = World::new(&[("guard.sh", "exit 0")]);
    let store = Store::new(world.folder.path().join("trust.json"));
    let approval = world.judge(GUARD).approval("2026-01-01T00:00:00Z", "me").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (store, approval) = (&store, super::store::Approval { hook: writer.to_string(), ..approval.clone() });
            scope.spawn(move || store.change(|all| *all = std::mem::take(all).with(approval)).unwrap());
        }
    });
    assert_eq!(store.read().unwrap().in_project(world.root()).count(), 8);
}

#[tokio::test]
async fn a_script_that_changes_after_it_was_loaded_is_not_run() {
    let mut world = World::new(&[("guard.sh", "exit 0"), ("other.sh", "exit 0")]);
    world.approve(GUARD);
    let hooks = judge(world.hooks(&format!("pre_tool_use: [{GUARD}]")), &world.ground).in_force(&[]);
    let executor = world.executor(hooks);
    let (input, cancel) = (Input::default(), CancellationToken::new());
    type Change = fn(&World);
    let changes: [(Change, bool); 5] = [
        (|_| {}, true),
        (|world| world.write("guard.sh", "touch ran"), false),
        (|world| world.write("guard.sh", "exit 0"), true),
        (
            |world| {
                std::fs::rename(world.root().join("guard.sh"), world.root().join("old.sh")).unwrap();
                symlink("other.sh", world.root().join("guard.sh")).unwrap();
            },
            false,
        ),
        (|world| std::fs::remove_file(world.root().join("guard.sh")).unwrap(), false),
    ];
    for (number, (change, runs)) in changes.into_iter().enumerate() {
        change(&world);
        let verdict = executor.dispatch(Event::PreToolUse, &input, &cancel).await;
        assert_eq!(verdict.allowed, runs, "{number}: {}", verdict.message);
        if !runs {
            assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::NotTrusted), "{number}");
        }
    }
    assert!(!world.root().join("ran").exists());
}

#[tokio::test]
async fn a_required_hook_that_is_not_in_force_blocks_its_event() {
    let mut world = World::new(&[("guard.sh", "exit 0")]);
    let named = "{name: guard, type: command, command: sh guard.sh, on_error: ignore}";
    let hooks = || world.hooks(&format!("pre_tool_use: [{named}]"));
    let required = [Required { event: Event::PreToolUse, name: "guard".into(), origin: Origin::default() }];
    let cancel = CancellationToken::new();
    let verdict = async |world: &World, hooks: HooksConfig| {
        let executor = world.executor(judge(hooks, &world.ground).in_force(&required));
        executor.dispatch(Event::PreToolUse, &Input::default(), &cancel).await
    };
    let missing = verdict(&world, HooksConfig::default()).await;
    assert!(!missing.allowed && missing.message.contains("there is none"), "{}", missing.message);
    let untrusted = verdict(&world, hooks()).await;
    assert!(!untrusted.allowed && untrusted.message.contains("not trusted"), "{}", untrusted.message);
    let hooks = hooks();
    world.approve(named);
    assert!(verdict(&world, hooks.clone()).await.allowed);
    let executor = world.executor(judge(hooks, &world.ground).in_force(&required));
    world.write("guard.sh", "exit 0 # changed");
    assert!(!executor.dispatch(Event::PreToolUse, &Input::default(), &cancel).await.allowed, "its `ignore` is none");
}

#[test]
fn hooks_of_the_user_need_no_approval_and_hooks_without_a_text_cannot_have_one() {
    let world = World::new(&[]);
    let of_user = read(world.root(), "pre_tool_use: [{type: command, command: sh x.sh}]", Source::User);
    assert_eq!(judge(of_user, &world.ground).hooks[0].standing, Standing::OfRight);
    for source in [Source::Workspace, Source::Extension, Source::Downloaded] {
        let mut hook = HookDefinition::builtin("redact_secrets", &[]);
        hook.origin.source = source;
        let group = crate::HookGroup { event: Event::PreInference, matcher: String::new(), hooks: vec![hook] };
        let judgement = judge(HooksConfig { groups: vec![group] }, &world.ground);
        assert_eq!(judgement.hooks[0].standing.name(), "refused", "{source:?}");
    }
}

#[test]
fn ollms_file_is_kept_as_it_is_but_for_what_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let store = ollm::Store::new(folder.path().join(".ollm/trusted-hooks.json"));
    let (a, b) = (approval("workspace:none:a"), approval("/p/x.sh"));
    store.change(|all| all.add(&a, "2026-01-01T00:00:00.000Z", "me")).unwrap();
    let text = std::fs::read_to_string(store.path()).unwrap().replace("\"version\"", "\"kept\": [1],\n  \"version\"");
    std::fs::write(store.path(), text).unwrap();
    store.change(|all| all.add(&b, "2026-01-01T00:00:00.000Z", "me")).unwrap();
    let all = store.read().unwrap();
    assert!(all.has(&a.source, &a.hash) && all.has(&b.source, &b.hash) && !all.has(&a.source, "sha256:00"));
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(store.path()).unwrap()).unwrap();
    assert_eq!((&file["kept"][0], &file["version"]), (&1.into(), &1.into()));
    assert_eq!(file["approvals"][0]["approvedBy"], "me");
    std::fs::write(store.path(), "{}").unwrap();
    assert!(store.change(|_| ()).is_err());
    assert_eq!(std::fs::read_to_string(store.path()).unwrap(), "{}");
}

#[test]
fn ollms_approval_counts_for_its_hooks_where_it_covers_all_of_them() {
    let mut world = World::new(&[("guard.sh", "exit 0")]);
    std::fs::set_permissions(world.root().join("guard.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let judged = |world: &World, hook: &str| {
        let file = Some(std::sync::Arc::new(world.root().join("hooks.json")));
        let (source, profile, working_dir) = (Source::Workspace, Profile::Ollm, world.root().to_owned());
        let options = ReadOptions { source, profile, working_dir, file, ..ReadOptions::default() };
        let text = format!("{{\"hooks\": {{\"pre-tool-call\": [{hook}]}}}}");
        let hooks = config::parse("hooks.json", &text, Format::Json, &options).unwrap().hooks;
        judge(hooks, &world.ground).hooks.remove(0)
    };
    let echo = r#"{"name": "check", "command": "/bin/echo", "args": ["x"]}"#;
    let script = r#"{"name": "script", "command": "./guard.sh"}"#;
    let mut approvals = ollm::Approvals::default();
    approvals.add(&judged(&world, echo).ollm_approval().unwrap(), "", "");
    let source = world.root().join("guard.sh").display().to_string();
    approvals.add(&ollm::Approval { source, hash: ollm::file_hash(b"exit 0") }, "", "");
    world.ground.ollm = Ok(approvals);
    for (hook, standing) in [
        (echo.to_owned(), Standing::ApprovedInOllm),
        (echo.replace("\"x\"", "\"y\""), Standing::NotTrusted),
        (echo.replace("\"x\"", "\"guard.sh\""), Standing::NotTrusted),
        (script.to_owned(), Standing::ApprovedInOllm),
        (script.replace("guard.sh\"", "guard.sh\", \"args\": [\"--off\"]"), Standing::NotTrusted),
    ] {
        assert_eq!(judged(&world, &hook).standing, standing, "{hook}");
    }
    world.write("guard.sh", "exit 1");
    assert_eq!(judged(&world, script).standing, Standing::NotTrusted);
}

fn approval(source: &str) -> ollm::Approval {
    ollm::Approval { source: source.into(), hash: ollm::file_hash(source.as_bytes()) }
}

#[test]
fn ollms_hash_of_a_command_is_over_compact_json_in_its_order() {
    let expected = ollm::file_hash(br#"{"command":"a \"b\"","args":["1"],"source":"workspace","extensionName":"x"}"#);
    assert_eq!(ollm::command_hash("a \"b\"", &["1"], "workspace", Some("x")), expected);
}

proptest! {
    #[test]
    fn any_bytes_are_approvals_or_a_reason(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Approvals::parse(&bytes);
        let _ = ollm::Approvals::parse(&bytes);
    }

    #[test]
    fn what_is_written_is_read_again(project in ".*", hook in ".*", text in proptest::option::of(".*")) {
        let approval = super::store::Approval {
            project,
            hook,
            hash: "sha256:00".into(),
            approved_at: "2026-01-01T00:00:00Z".into(),
            approved_by: "me".into(),
            definition: serde_json::json!({"a": [1, null, "x"]}),
            files: vec![super::store::ApprovedFile { path: "p".into(), target: None, sha256: "00".into(), text }],
        };
        let approvals = Approvals::default().with(approval);
        prop_assert_eq!(Approvals::parse(approvals.to_json().as_bytes()), Ok(approvals));
    }

    #[test]
    fn canonical_json_is_the_same_value(text in ".*", number in any::<i64>()) {
        let value = serde_json::json!({"z": text, "a": {"y": [number, null], "b": text}});
        let mut canonical_text = String::new();
        canonical(&value, &mut canonical_text);
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&canonical_text).unwrap(), value);
        let start = "{\"a\":{\"b\":";
        prop_assert!(canonical_text.starts_with(start));
    }
}

#[test]
fn a_hook_of_ollama_clis_contract_finds_the_folder_that_was_looked_at() {
    let world = World::new(&[("guard.sh", "exit 0\n")]);
    let text =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh $OLLAMA_PROJECT_DIR/guard.sh"}]}]}}"#;
    let options = ReadOptions { source: Source::Workspace, ..ReadOptions::default() };
    let hooks = crate::config::ollama_cli::parse("settings.json", text, &options).unwrap();
    let judged = judge(hooks, &world.ground).hooks.remove(0);
    let root = world.root().to_str().unwrap();
    assert_eq!(judged.definition.env.get("OLLAMA_PROJECT_DIR").map(String::as_str), Some(root));
    let files: Vec<_> = judged.content.unwrap().files.into_iter().map(|file| file.path).collect();
    assert_eq!(files, ["guard.sh"]);
}

#[test]
fn what_is_switched_off_is_no_hook_in_force_even_where_it_is_approved_or_needs_no_approval() {
    let world = World::new(&[]);
    for source in [Source::User, Source::Workspace] {
        let text = r#"{"hooks": {"custom": [{"name": "n", "command": "sh", "enabled": false}]}}"#;
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let options = ReadOptions { source, env: &env, ..ReadOptions::default() };
        let hooks = crate::config::ollm::parse("a.json", text, Format::Json, &options).unwrap().hooks;
        let mut ground = world.ground.clone();
        ground.named = judge(hooks.clone(), &ground).hash;
        let judgement = judge(hooks, &ground);
        assert!(matches!(judgement.hooks[0].standing, Standing::SwitchedOff(_)), "{source:?}");
        assert!(judgement.in_force(&[]).is_empty(), "{source:?}");
    }
}

/// The same hooks, brought by a skill.
fn of_skill(mut hooks: HooksConfig) -> HooksConfig {
    hooks.hooks_mut().for_each(|hook| hook.origin.skill = Some("s".into()));
    hooks
}

#[test]
fn a_skills_hooks_are_no_standing_ones_and_stand_in_for_none() {
    let mut world = World::new(&[("guard.sh", "exit 2\n")]);
    let named = format!("pre_tool_use: [{}]", GUARD.replace("type:", "name: guard, type:"));
    let file = world.root().join("gatehook.yaml");
    let judgement = |world: &World| judge(of_skill(world.hooks(&named)), &world.ground);
    assert!(judgement(&world).of_skill(&file).is_empty());
    let approval = judgement(&world).hooks[0].approval("2026-01-01T00:00:00Z", "me").unwrap();
    world.ground.approvals = Ok(Approvals::default().with(approval));
    let approved = judgement(&world);
    assert!(approved.hooks[0].standing.is_in_force());
    assert!(approved.in_force(&[]).is_empty());
    assert_eq!(approved.of_skill(&file).groups.len(), 1);
    assert!(approved.of_skill(&file).hooks_mut().all(|hook| hook.seal.is_some()));
    assert!(approved.of_skill(Path::new("/elsewhere/SKILL.md")).is_empty());
    let required = [Required { event: Event::PreToolUse, name: "guard".to_owned(), origin: Origin::default() }];
    assert_eq!(approved.missing(&required).len(), 1, "what is in force at times guards nothing at the others");
    // The approval is of the skill's hook, and of no standing one.
    assert!(!judge(world.hooks(&named), &world.ground).hooks[0].standing.is_in_force());
}

#[test]
fn a_projects_hook_finds_the_folder_that_was_looked_at() {
    let world = World::new(&[("guard.sh", "")]);
    let judged = world.judge(GUARD);
    assert_eq!(judged.definition.env.get(PROJECT_DIR).map(Path::new), Some(world.root()));
    let own = world.judge("{type: command, command: 'sh $GATEHOOK_PROJECT_DIR/guard.sh'}");
    assert_eq!(paths(&own.content.unwrap()), ["guard.sh"]);
}

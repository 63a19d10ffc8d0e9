//! What the model is told.

use std::process::Command;

use super::*;

fn git(dir: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    let mut git = Command::new("git");
    git.args(identity)
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = git.output().unwrap();
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with one commit, in which one file has changed since.
fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "-b", "main"]);
    std::fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-q", "-m", "Begin"]);
    std::fs::write(dir.path().join("a.txt"), "two\n").unwrap();
    dir
}

/// What a hook tells the model of what happens in a folder.
async fn says(dir: &Path, event: Event, name: &str, args: &[&str]) -> String {
    let executor = in_folder(event, name, args, dir);
    let verdict = verdict_of(&executor, event, json!({"session_id": "s", "cwd": dir, "tool_name": "shell"})).await;
    assert!(verdict.system_message.is_empty(), "{name}: {}", verdict.system_message);
    told(&verdict).trim().to_owned()
}

#[tokio::test]
async fn the_date_is_an_instruction_where_there_are_some_and_text_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let today = says(dir.path(), Event::TurnStart, "add_date", &[]).await;
    assert!(today.rsplit(' ').next().unwrap().parse::<jiff::civil::Date>().is_ok(), "{today}");
    let turn = verdict(Event::TurnStart, "add_date", &[], json!({})).await;
    assert_eq!(turn.instruction_context[0]["key"], "core/date");
    let prompt = verdict(Event::UserPromptSubmit, "add_date", &[], json!({})).await;
    assert!(prompt.instruction_context.is_empty() && prompt.additional_context.contains("Today's date"));
}

#[tokio::test]
async fn a_linked_worktree_is_a_repository_too() {
    let main = repository();
    let linked = tempfile::tempdir().unwrap();
    let path = linked.path().join("tree");
    git(main.path(), &["worktree", "add", "-q", path.to_str().unwrap()]);
    let inner = path.join("inner");
    std::fs::create_dir(&inner).unwrap();
    for (dir, is) in [(main.path(), "Yes"), (&path, "Yes"), (&inner, "Yes"), (linked.path(), "No")] {
        let told = says(dir, Event::SessionStart, "add_environment_info", &[]).await;
        assert!(told.contains(&format!("Git repository: {is}")), "{}: {told}", dir.display());
        assert!(told.contains(&format!("Working directory: {}", dir.display())), "{told}");
    }
    assert!(says(&path, Event::TurnStart, "add_git_status", &[]).await.contains("## tree"));
}

#[tokio::test]
async fn where_an_event_happened_is_the_engines_folder_unless_docker_agent_says() {
    for (name, args, event) in
        [("add_environment_info", &[][..], Event::SessionStart), ("add_prompt_files", &["x.md"], Event::TurnStart)]
    {
        let native = verdict(event, name, args, json!({})).await;
        let foreign = foreign(event, name, args, json!({})).await;
        assert_eq!((native.instruction_context.len(), foreign.instruction_context.len()), (1, 0), "{name}");
    }
}

#[tokio::test]
async fn git_is_asked_what_has_changed() {
    let dir = repository();
    let status = says(dir.path(), Event::TurnStart, "add_git_status", &[]).await;
    assert!(status.contains("## main") && status.contains(" M a.txt"), "{status}");
    let stat = says(dir.path(), Event::TurnStart, "add_git_diff", &[]).await;
    assert!(stat.contains("a.txt | 2 +-") && !stat.contains("+two"), "{stat}");
    git(dir.path(), &["add", "."]);
    let full = says(dir.path(), Event::TurnStart, "add_git_diff", &["full"]).await;
    assert!(full.contains("-one") && full.contains("+two"), "what is staged counts: {full}");
    let commits = says(dir.path(), Event::SessionStart, "add_recent_commits", &[]).await;
    assert!(commits.ends_with(" Begin"), "{commits}");
    git(dir.path(), &["commit", "-q", "-m", "Go on"]);
    assert_eq!(says(dir.path(), Event::TurnStart, "add_git_diff", &["full"]).await, "", "a clean tree says nothing");
    let last = says(dir.path(), Event::SessionStart, "add_recent_commits", &["1"]).await;
    assert!(last.ends_with(" Go on") && !last.contains("Begin"), "{last}");
}

#[tokio::test]
async fn git_has_nothing_to_say_outside_of_a_repository_or_before_the_first_commit() {
    let outside = tempfile::tempdir().unwrap();
    let new = tempfile::tempdir().unwrap();
    git(new.path(), &["init", "-q"]);
    for (name, event) in [
        ("add_git_diff", Event::TurnStart),
        ("add_recent_commits", Event::SessionStart),
        ("add_git_status", Event::TurnStart),
    ] {
        assert_eq!(says(outside.path(), event, name, &[]).await, "", "{name}");
    }
    assert_eq!(says(new.path(), Event::SessionStart, "add_recent_commits", &[]).await, "");
}

#[tokio::test]
async fn much_of_git_is_cut_with_a_mark() {
    let dir = repository();
    std::fs::write(dir.path().join("a.txt"), "a long line\n".repeat(200_000)).unwrap();
    let diff = says(dir.path(), Event::TurnStart, "add_git_diff", &["full"]).await;
    assert!(diff.len() < 4200 && diff.ends_with("… (truncated)"), "{}", diff.len());
    for number in 0..500 {
        std::fs::write(dir.path().join(format!("file-{number:03}")), "").unwrap();
    }
    let status = says(dir.path(), Event::TurnStart, "add_git_status", &[]).await;
    assert!(status.len() < 4200 && status.ends_with("… (truncated)"), "{}", status.len());
}

#[tokio::test]
async fn variables_of_the_caller_do_not_lead_git_elsewhere() {
    let (here, elsewhere) = (repository(), repository());
    git(elsewhere.path(), &["checkout", "-q", "-b", "other"]);
    let hooks = vec![HookDefinition::builtin("add_git_status", &[])];
    let config = HooksConfig { groups: vec![HookGroup { event: Event::TurnStart, matcher: String::new(), hooks }] };
    let mut env = surroundings(here.path());
    env.env.insert("GIT_DIR".to_owned(), elsewhere.path().join(".git").display().to_string());
    let verdict = verdict_of(&Executor::new(config, env).unwrap(), Event::TurnStart, json!({})).await;
    assert!(told(&verdict).contains("## main"), "{}", told(&verdict));
}

#[tokio::test]
async fn a_listing_is_sorted_hides_dotfiles_and_counts_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(says(dir.path(), Event::SessionStart, "add_directory_listing", &[]).await, "");
    std::fs::create_dir(dir.path().join("src")).unwrap();
    for name in ["b", "a", ".hidden", "two\nlines"] {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let listing = says(dir.path(), Event::SessionStart, "add_directory_listing", &[]).await;
    assert!(listing.ends_with(":\na\nb\nsrc/\ntwo\\nlines"), "{listing}");
    for number in 0..150 {
        std::fs::write(dir.path().join(format!("f{number:03}")), "").unwrap();
    }
    let listing = says(dir.path(), Event::SessionStart, "add_directory_listing", &[]).await;
    assert!(listing.lines().count() == 102 && listing.ends_with("… and 54 more"), "{listing}");
}

#[tokio::test]
async fn the_user_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let user = says(dir.path(), Event::SessionStart, "add_user_info", &[]).await;
    assert!(user.contains("- Host: "), "{user}");
}

#[tokio::test]
async fn prompt_files_are_the_nearest_of_each_name() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project/inner");
    std::fs::create_dir_all(project.join("deep/er")).unwrap();
    for (path, text) in
        [("P.md", "at home"), ("project/P.md", "in the project"), ("project/inner/deep/er/P.md", "deep")]
    {
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    let executor = in_folder(Event::TurnStart, "add_prompt_files", &["--depth=2", "P.md", "absent.md"], dir.path());
    let verdict = verdict_of(&executor, Event::TurnStart, json!({"cwd": project})).await;
    let items = &verdict.instruction_context;
    assert_eq!(items.len(), 3, "{items:?}");
    assert!(items[0]["content"].as_str().unwrap().ends_with("in the project"));
    assert!(items[1]["content"].as_str().unwrap().ends_with("at home"));
    assert_eq!((&items[0]["group"], &items[0]["complete_group"]), (&json!("core/prompt-files"), &json!(true)));
    assert_eq!(items[2]["key"], "core/prompt-file-index");
    assert!(items[2]["content"].as_str().unwrap().ends_with("deep/er/P.md"));
}

#[tokio::test]
async fn prompt_files_that_are_gone_leave_a_marker() {
    let dir = tempfile::tempdir().unwrap();
    let executor = in_folder(Event::TurnStart, "add_prompt_files", &["P.md"], dir.path());
    let verdict = verdict_of(&executor, Event::TurnStart, json!({})).await;
    assert_eq!(verdict.instruction_context.len(), 1);
    assert_eq!(verdict.instruction_context[0]["set_marker"], true);
    // A folder, or a pipe that nobody writes to, is no prompt.
    std::fs::create_dir(dir.path().join("P.md")).unwrap();
    assert_eq!(verdict_of(&executor, Event::TurnStart, json!({})).await.instruction_context[0]["set_marker"], true);
}

#[tokio::test]
async fn context_files_come_from_the_outermost_folder_to_the_innermost() {
    let dir = repository();
    let inner = dir.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    for (path, text) in [
        ("AGENTS.md", "outer"),
        ("a/CLAUDE.md", "ignored"),
        ("a/OLLAMA.md", "middle"),
        ("a/b/AGENTS.md", "inner"),
        (".ollamaignore", "a/CLAUDE.md\n"),
    ] {
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    std::os::unix::fs::symlink("AGENTS.md", dir.path().join("CLAUDE.md")).unwrap();
    let told = says(&inner, Event::SessionStart, "load_context_files", &[]).await;
    let texts: Vec<&str> =
        told.lines().filter(|line| !line.is_empty() && !line.starts_with("Instructions from")).collect();
    assert_eq!(texts, ["outer", "middle", "inner"], "{told}");
    assert_eq!(says(dir.path(), Event::SessionStart, "load_context_files", &["GEMINI.md"]).await, "");
}

#[tokio::test]
async fn templates_are_filled_and_blank_ones_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["tool={{ .ToolName }}", "  ", "{{ if .Prompt }}x{{ end }}", "{{ .HookEventName }}"];
    let text = says(dir.path(), Event::PostToolUse, "add_context", &args).await;
    assert_eq!(text, "tool=shell\npost_tool_use");
    let failed = foreign(Event::TurnStart, "add_context", &["ok", "{{ .NoSuchField }}"], json!({})).await;
    assert!(failed.additional_context.is_empty() && !failed.system_message.is_empty(), "{failed:?}");
}

//! What the agent kept: `sessions`, `sessions show`, `sessions export`, `sessions rm`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gatehook_events::{Entry, FunctionCall, Journal, Message, SessionHead, ToolCall};
use gatehook_store::Sessions;
use rusqlite::Connection;

use crate::support::{Home, Ran, ran};

fn file(home: &Home) -> PathBuf {
    home.path().join("home/.local/state/gatehook/sessions.db")
}

fn head(home: &Home, id: &str, parent: Option<&str>) -> SessionHead {
    SessionHead {
        id: id.into(),
        parent: parent.map(Into::into),
        workspace: home.path().canonicalize().unwrap().to_str().unwrap().into(),
        agent: "root".into(),
        model: "ollama/llama3".into(),
        started: SystemTime::UNIX_EPOCH + Duration::from_millis(4_000_000_000_123),
    }
}

fn message(role: &str, text: &str) -> Entry {
    Entry::Message { message: Message::new(role, text) }
}

/// Two turns, the second interrupted in mid-call.
fn entries() -> Vec<Entry> {
    let call = ToolCall {
        id: Some("c-1".into()),
        kind: "function".into(),
        function: FunctionCall { name: "bash".into(), arguments: "{\"command\":\"ls\"}".into() },
        ..ToolCall::default()
    };
    let calling = Message { tool_calls: Some(vec![call]), ..Message::new("assistant", "I look.") };
    vec![
        Entry::Turn { number: 1 },
        message("user", "clean up\u{1b}[2J"),
        message("assistant", "Of what?"),
        Entry::Spent { input_tokens: 12, output_tokens: 3, cost: Some(0.5) },
        Entry::TurnEnd { reason: "normal".into() },
        Entry::Turn { number: 2 },
        message("user", "of this folder"),
        Entry::Message { message: calling },
    ]
}

/// A home with the sessions `aaa-1`, its subagent's `aaa-1-sub`, and `aab-2`, in this order.
fn home() -> Home {
    let home = Home::new();
    let sessions = Sessions::new(file(&home));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for (id, parent) in [("aaa-1", None), ("aaa-1-sub", Some("aaa-1")), ("aab-2", None)] {
            sessions.begin(head(&home, id, parent)).await.unwrap();
            sessions.append(&id.into(), entries()).await.unwrap();
            // Milliseconds decide which is newer.
            let now = SystemTime::now();
            while now.elapsed().unwrap() < Duration::from_millis(2) {}
        }
    });
    home
}

fn sessions(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["sessions"], args].concat())
}

/// The identities of a list.
fn ids(home: &Home, args: &[&str]) -> Vec<String> {
    let listed = sessions(home, &[args, &["--json"]].concat()).json();
    listed.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sessions_are_listed_the_newest_first() {
    let home = home();
    let listed = sessions(&home, &[]);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!((listed.code, lines.len(), listed.err.as_str()), (0, 3, ""), "{}", listed.shown());
    for (line, parts) in lines.iter().zip([
        &["ID", "WHEN", "TURNS", "AGENT", "MODEL", "WORKSPACE", "PROMPT"][..],
        &["aab-2", " 2 ", "root", "ollama/llama3", "clean up"],
        &["aaa-1 "],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?} in {line}");
    }
    assert!(!listed.out.contains('\u{1b}'));
    assert_eq!(ids(&home, &[]), ["aab-2", "aaa-1"]);
    assert_eq!(ids(&home, &["--limit", "1"]), ["aab-2"]);
    assert_eq!(ids(&home, &["--parent", "aaa-1"]), ["aaa-1-sub"]);
    assert_eq!(ids(&home, &["--workspace", "."]), ["aab-2", "aaa-1"]);
    assert!(ids(&home, &["--workspace", "home"]).is_empty());
    let json = sessions(&home, &["--json"]).json();
    assert_eq!((&json[0]["started"], &json[0]["turns"]), (&"2096-10-02T07:06:40.123Z".into(), &2.into()));
}

#[test]
fn one_is_shown_with_all_that_was_said() {
    let home = home();
    let shown = sessions(&home, &["show", "aab"]);
    for part in [
        "# Session aab-2\n",
        "- Turns: 2\n- Tokens: 12 in, 3 out\n- Cost: 0.5000\n",
        "## User\n\nclean up\n\n## Assistant\n\nOf what?\n\n## User\n\nof this folder\n\n## Assistant\n\nI look.\n",
        "Calls `bash`:\n\n```json\n{\"command\":\"ls\"}\n```\n\nResult:\n\n```\ninterrupted: ",
    ] {
        assert!(shown.out.contains(part), "{part:?} in {}", shown.shown());
    }
    assert_eq!((shown.code, shown.err.as_str()), (0, "the last turn did not end\n"));
    assert!(!shown.out.contains('\u{1b}'));
    let json = sessions(&home, &["show", "aaa-1", "--json"]).json();
    assert_eq!((&json["session"]["id"], json["entries"].as_array().unwrap().len()), (&"aaa-1".into(), 8), "{json}");
    let first = &json["entries"][0];
    assert_eq!((&first["type"], &first["number"], &first["place"]), (&"turn".into(), &1.into(), &1.into()));
}

#[test]
fn one_is_exported_for_programs_and_for_people() {
    let home = home();
    let lines = sessions(&home, &["export", "aab-2"]);
    let read: Vec<Message> = lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let roles: Vec<&str> = read.iter().map(|message| &*message.role).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "tool"]);
    assert_eq!(read[0].content.as_deref(), Some("clean up\u{1b}[2J"), "as it was said");

    let page = sessions(&home, &["export", "aab-2", "--format", "markdown", "-o", "session.md"]);
    assert_eq!(page.shown(), "exit 0\n");
    let path = home.path().join("session.md");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("# Session aab-2\n"));
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let nowhere = sessions(&home, &["export", "aab-2", "-o", "no/such/folder"]);
    assert!(nowhere.code == 71 && nowhere.err.contains("no/such/folder cannot be written"), "{}", nowhere.shown());
}

#[test]
fn what_is_removed_is_gone_with_its_subagents_and_transcripts() {
    let home = home();
    let transcripts = file(&home).with_file_name("transcripts");
    assert_eq!(std::fs::read_dir(&transcripts).unwrap().count(), 3);
    let removed = sessions(&home, &["rm", "aaa-1"]);
    assert_eq!((removed.code, removed.out.as_str()), (0, ""));
    let mut lines: Vec<&str> = removed.err.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["removed aaa-1", "removed aaa-1-sub"]);
    assert_eq!(ids(&home, &[]), ["aab-2"]);
    assert_eq!(std::fs::read_dir(&transcripts).unwrap().count(), 1);
    assert_eq!(sessions(&home, &["rm", "aaa-1"]).code, 2);
}

#[test]
fn a_beginning_must_mean_one_session() {
    let home = home();
    for args in [&["show", "aa"][..], &["export", "aa"], &["rm", "aa"]] {
        let several = sessions(&home, args);
        assert!(several.code == 2 && several.err.contains("several sessions begin with `aa`"), "{}", several.shown());
        assert!(several.err.contains("aaa-1, aaa-1-sub, aab-2"), "{}", several.shown());
    }
    assert_eq!(ids(&home, &[]).len(), 2);
    for args in [&["show", "x"][..], &["export", "x"], &["rm", "x"], &["--parent", "x"]] {
        let missing = sessions(&home, args);
        assert!(missing.code == 2 && missing.err.contains("there is no session `x`"), "{}", missing.shown());
    }
}

#[test]
fn where_no_session_was_kept_that_is_said() {
    let home = Home::new();
    assert_eq!(sessions(&home, &[]).shown(), "exit 0\n--- stderr\nno session is kept like that\n");
    assert_eq!(sessions(&home, &["--json"]).shown(), "exit 0\n--- stdout\n[]\n");
    assert_eq!(sessions(&home, &["show", "x"]).code, 2);
    assert!(!file(&home).exists(), "to ask makes no file");
    let placeless = ran(home.gatehook().arg("sessions").env_remove("HOME"));
    assert!(placeless.code == 71 && placeless.err.contains("neither XDG_STATE_HOME nor HOME"), "{}", placeless.shown());
}

#[test]
fn a_file_that_cannot_be_read_is_said_to_be_so() {
    let home = home();
    Connection::open(file(&home)).unwrap().pragma_update(None, "user_version", 1000).unwrap();
    let newer = sessions(&home, &[]);
    assert!(newer.code == 71 && newer.err.contains("was made by a newer gatehook"), "{}", newer.shown());
    let home = Home::new();
    home.file("home/.local/state/gatehook/sessions.db", &"no database\n".repeat(100));
    let damaged = sessions(&home, &["show", "x"]);
    assert!(damaged.code == 71 && damaged.err.contains("is damaged or no database"), "{}", damaged.shown());
    assert!(damaged.err.contains("move it away"), "{}", damaged.shown());
}

#[test]
fn the_page_has_a_row_for_every_entry() {
    let page = std::fs::read_to_string(crate::pages::root().join("docs/agent.md")).unwrap();
    let text = std::sync::Arc::<str>::from("");
    for entry in [
        Entry::Turn { number: 1 },
        message("user", ""),
        Entry::Said { thinking: true, text: text.clone() },
        Entry::Compacted { summary: text.clone(), kept: 0, source: text.clone() },
        Entry::Switched { agent: text.clone() },
        Entry::Model { model: text.clone() },
        Entry::Granted { rule: Some(text.clone()), mode: Some(text.clone()) },
        Entry::Spent { input_tokens: 0, output_tokens: 0, cost: Some(0.5) },
        Entry::Notice { level: text.clone(), text: text.clone() },
        Entry::Undone { messages: 0 },
        Entry::TurnEnd { reason: text.clone() },
        Entry::Other { data: serde_json::Value::Null },
    ] {
        let json = serde_json::to_value(&entry).unwrap();
        let kind = json["type"].as_str().unwrap();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{kind}` |"))).expect(kind);
        let fields = json.as_object().unwrap().keys().filter(|field| *field != "type");
        fields.for_each(|field| assert!(row.contains(&format!("`{field}`")), "{field} in {row}"));
    }
}

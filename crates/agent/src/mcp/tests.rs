//! Servers that behave, and servers that do not: a script plays all of them.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use gatehook_engine::definition::EnvPolicy;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::tools::{Calling, Scene, ToolErrorKind, ToolOutput};

const SCRIPT: &str = r#"
import json, os, subprocess, sys
mode = sys.argv[1] if len(sys.argv) > 1 else ""
names = ["echo", "die", "hang", "huge", "change", "env", "child", "picture", "fail", "refuse", "structured"]
hints = {"echo": {"readOnlyHint": True}, "die": {"destructiveHint": True}}
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
def tool(name):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": "It is " + name, "inputSchema": schema, "annotations": hints.get(name, {})}
if mode == "exit":
    sys.exit("no licence")
if mode == "flood":
    while True:
        print("x" * 1000)
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    params = message.get("params") or {}
    def answer(result):
        say({"id": number, "result": result})
    def text(words, **more):
        answer({"content": [{"type": "text", "text": words}], **more})
    if mode == "silent":
        continue
    if method == "initialize":
        if mode == "garbage":
            print("hello\n{}\n[1]\n\n" + "y" * 100000)
        answer({"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "fake", "version": "1"}})
    elif method == "tools/list":
        page = {"tools": [tool(name) for name in names]}
        if mode == "endless":
            cursor = int(params.get("cursor") or 0)
            page = {"tools": [tool("t%d" % cursor)], "nextCursor": str(cursor + 1)}
        if mode == "hostile":
            page["tools"] = [tool("a b"), tool(""), tool("echo"), tool("echo"), {**tool("wide"), "inputSchema":
                             {"type": "object", "description": "z" * 100000}}]
        answer(page)
    elif method == "tools/call":
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "echo":
            text(arguments.get("text", ""))
        elif name == "die":
            print("out of order \x1b[31m", file=sys.stderr, flush=True)
            sys.exit(3)
        elif name == "huge":
            text("é" * 2000000)
        elif name == "change":
            names.append("new")
            say({"method": "notifications/tools/list_changed"})
            text("changed")
        elif name == "env":
            text(json.dumps(dict(os.environ, CWD=os.getcwd())))
        elif name == "child":
            text(str(subprocess.Popen(["sleep", "1000"]).pid))
        elif name == "picture":
            answer({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"},
                                {"type": "resource_link", "uri": "file:///x", "name": "x"},
                                {"type": "resource", "resource": {"uri": "file:///y", "text": "why"}}]})
        elif name == "fail":
            text("it is broken", isError=True)
        elif name == "refuse":
            say({"id": number, "error": {"code": -32602, "message": "not with these arguments"}})
        elif name == "structured":
            answer({"content": [], "structuredContent": {"degrees": 21}})
"#;

/// A session's servers, and what the person was told of them.
struct Stand {
    folder: tempfile::TempDir,
    servers: Servers,
    told: Arc<Mutex<Vec<String>>>,
}

fn program(mode: &str) -> ServerDefinition {
    let command = "python3".to_owned();
    let args = vec!["-u".to_owned(), "server.py".to_owned(), mode.to_owned()];
    let env = [("OWN".to_owned(), "own".to_owned())].into();
    let reached = Reached::Program { command, args, env, env_policy: EnvPolicy::Minimal, working_dir: None };
    definition(reached)
}

fn definition(reached: Reached) -> ServerDefinition {
    ServerDefinition {
        name: "fake".into(),
        reached,
        naming: Naming::Server,
        tools: Vec::new(),
        startup_timeout: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        origin: Default::default(),
        written: Arc::default(),
        seal: None,
    }
}

impl Stand {
    fn new(definition: ServerDefinition) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.py"), SCRIPT).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let notices = {
            let told = Arc::clone(&told);
            Arc::new(move |notice| told.lock().unwrap().push(notice))
        };
        let mut env: std::collections::BTreeMap<String, String> = std::env::vars().collect();
        env.insert("SECRET".to_owned(), "secret".to_owned());
        let host = Host { workspace: folder.path().into(), env: Arc::new(env), notices };
        Self { servers: Servers::new(&[definition], &host), folder, told }
    }

    async fn ready(definition: ServerDefinition) -> Self {
        let stand = Self::new(definition);
        stand.servers.ready().await;
        stand
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.servers.tools(&AgentDefinition::new("root"))
    }

    fn names(&self) -> Vec<String> {
        self.tools().iter().map(|tool| tool.spec().tool.name.to_string()).collect()
    }

    async fn call_with(&self, name: &str, arguments: Value, cancel: &CancellationToken) -> ToolOutput {
        let tools = self.tools();
        let known = |tool: &&Arc<dyn Tool>| tool.spec().tool.name.ends_with(name);
        let tool = tools.iter().find(known).unwrap_or_else(|| panic!("no {name}: {:?}", self.told()));
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let workspace: Arc<Path> = self.folder.path().into();
        let scene =
            Scene { session_id: "s".into(), workspace, allowed: [].into(), shared: [].into(), env: Arc::default() };
        let calling = Calling { id: "1", arguments: &arguments, scene: &scene, output: &|_| {}, cancel };
        tool.call(calling).await
    }

    async fn call(&self, name: &str) -> ToolOutput {
        self.call_with(name, json!({ "text": "hello" }), &CancellationToken::new()).await
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

/// Waits until something holds.
async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it never came to be");
}

#[tokio::test]
async fn a_servers_tools_are_listed_under_its_name_and_called() {
    let stand = Stand::ready(program("")).await;
    assert_eq!(stand.told(), [""; 0]);
    assert_eq!(stand.names().len(), 11);
    let tools = stand.tools();
    let spec = tools[0].spec();
    assert_eq!((&*spec.tool.name, spec.tool.category.as_deref()), ("mcp__fake__echo", Some("mcp")));
    assert_eq!((&*spec.description, &spec.parameters["type"]), ("It is echo", &json!("object")));
    let hints: Vec<(bool, bool)> =
        tools.iter().map(|it| (it.spec().tool.read_only, it.spec().tool.destructive)).collect();
    assert_eq!(hints[..3], [(true, false), (false, true), (false, false)]);
    assert_eq!(stand.call("echo").await, ToolOutput::text("hello"));
}

#[tokio::test]
async fn what_is_no_text_is_noted_and_failures_are_the_tools() {
    let stand = Stand::ready(program("")).await;
    let expected = "[image: image/png, 3 bytes, not shown]\n[resource x: file:///x]\n[resource file:///y]\nwhy";
    assert_eq!(stand.call("picture").await, ToolOutput::text(expected));
    assert_eq!(stand.call("fail").await, ToolOutput::error(ToolErrorKind::Other, "it is broken"));
    assert_eq!(stand.call("refuse").await, ToolOutput::error(ToolErrorKind::Other, "not with these arguments"));
    assert_eq!(stand.call("structured").await, ToolOutput::text(r#"{"degrees":21}"#));
    let huge = stand.call("huge").await;
    assert!(huge.text.ends_with("\n[cut off after 1048576 bytes]"), "{}", huge.text.len());
    assert!(huge.text.len() < (1 << 20) + 100);
}

#[tokio::test]
async fn a_server_that_dies_fails_its_call_and_is_started_again_by_the_next() {
    let stand = Stand::ready(program("")).await;
    let died = stand.call("die").await;
    assert_eq!(died.error, Some(ToolErrorKind::Network));
    assert_eq!(died.text, "the MCP server `fake`: it ended while it worked on this call: out of order");
    assert_eq!(stand.call("echo").await, ToolOutput::text("hello"));
    assert_eq!(stand.told(), ["the MCP server `fake`: it has ended: out of order"]);
    // One that ends again and again has to wait.
    let mut texts = Vec::new();
    for _ in 0..8 {
        texts.push(stand.call("die").await.text);
    }
    assert!(texts.iter().any(|text| text.contains("it is started again in 1 s at the earliest")), "{texts:#?}");
}

#[tokio::test]
async fn a_call_has_a_deadline_and_can_be_given_up() {
    let stand = Stand::ready(ServerDefinition { timeout: Duration::from_millis(200), ..program("") }).await;
    let late = stand.call("hang").await;
    assert_eq!(late, ToolOutput::error(ToolErrorKind::Timeout, "the tool did not answer within 0.2 s"));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let given_up = stand.call_with("hang", json!({}), &cancel).await;
    assert_eq!(given_up.error, Some(ToolErrorKind::Cancelled));
    assert_eq!(stand.call("echo").await, ToolOutput::text("hello"));
}

#[tokio::test]
async fn new_tools_are_heard_of() {
    let stand = Stand::ready(program("")).await;
    assert_eq!(stand.call("change").await.text, "changed");
    until(|| stand.names().contains(&"mcp__fake__new".to_owned())).await;
}

#[tokio::test]
async fn a_program_gets_its_own_variables_and_no_secrets() {
    let stand = Stand::ready(program("")).await;
    let env: Map<String, Value> = serde_json::from_str(&stand.call("env").await.text).unwrap();
    assert_eq!((env.get("OWN"), env.get("SECRET")), (Some(&json!("own")), None));
    let folder = stand.folder.path().canonicalize().unwrap();
    assert_eq!(env["CWD"], folder.to_str().unwrap());
}

#[tokio::test]
async fn nothing_of_a_server_outlives_its_session() {
    let stand = Stand::ready(program("")).await;
    let child = stand.call("child").await.text;
    let process = format!("/proc/{child}");
    assert!(Path::new(&process).exists());
    stand.servers.close().await;
    drop(stand);
    let is_gone = || std::fs::read_to_string(format!("{process}/stat")).map_or(true, |stat| stat.contains(") Z"));
    until(is_gone).await;
}

#[tokio::test]
async fn servers_that_are_not_there_are_told_and_the_rest_goes_on() {
    let silent = ServerDefinition { startup_timeout: Duration::from_millis(300), ..program("silent") };
    for (definition, expected) in [
        (silent, "the MCP server `fake`: it was not ready after 0.3 s"),
        (program("exit"), "no licence"),
        (program("flood"), "the MCP server `fake`: "),
        (
            definition(Reached::Program {
                command: "no-such-program".to_owned(),
                args: Vec::new(),
                env: Default::default(),
                env_policy: EnvPolicy::Minimal,
                working_dir: None,
            }),
            "it cannot be started: `no-such-program` is nowhere on PATH",
        ),
    ] {
        let stand = Stand::ready(definition).await;
        assert_eq!(stand.names(), [""; 0]);
        let told = stand.told();
        assert!(told.len() == 1 && told[0].contains(expected), "{told:?}");
    }
}

#[tokio::test]
async fn garbage_is_passed_over_and_hostile_lists_are_bounded() {
    let stand = Stand::ready(program("garbage")).await;
    assert_eq!(stand.call("echo").await, ToolOutput::text("hello"));

    let stand = Stand::ready(program("endless")).await;
    assert_eq!(stand.names().len(), 64);
    assert_eq!(stand.told(), ["the MCP server `fake`: it has more than 256 tools: the others are left out"]);

    let stand = Stand::ready(program("hostile")).await;
    assert_eq!(stand.names(), ["mcp__fake__echo"]);
    let told = stand.told();
    assert!(told[0].contains("4 of its tools are left out: `a b` is no name of a tool"), "{told:?}");
}

#[tokio::test]
async fn an_agent_has_the_tools_that_its_toolsets_name() {
    let stand =
        Stand::ready(ServerDefinition { tools: vec!["echo".into(), "die".into(), "env".into()], ..program("") }).await;
    let names = |toolset: Option<(&[&str], bool)>| -> Vec<String> {
        let toolset = toolset.map(|(only, read_only)| {
            let only = only.iter().map(|name| (*name).to_owned()).collect();
            vec![Toolset { tools: Tools::Server("fake".into()), only, read_only, instruction: None }]
        });
        let agent = AgentDefinition { toolsets: toolset, ..AgentDefinition::new("a") };
        stand.servers.tools(&agent).iter().map(|tool| tool.spec().tool.name.to_string()).collect()
    };
    assert_eq!(names(None), ["mcp__fake__echo", "mcp__fake__die", "mcp__fake__env"]);
    assert_eq!(names(Some((&["die", "mcp__fake__env"], false))), ["mcp__fake__die", "mcp__fake__env"]);
    assert_eq!(names(Some((&[], true))), ["mcp__fake__echo"]);
    let none = AgentDefinition { toolsets: Some(Vec::new()), ..AgentDefinition::new("a") };
    assert!(stand.servers.tools(&none).is_empty());
}

#[tokio::test]
async fn docker_agents_names_of_tools_hold() {
    for (naming, expected) in [(Naming::Prefixed("clock".into()), "clock_echo"), (Naming::Bare, "echo")] {
        let stand = Stand::ready(ServerDefinition { naming, tools: vec!["echo".into()], ..program("") }).await;
        assert_eq!(stand.names(), [expected]);
    }
}

/// A server over HTTP that answers each request by a function of its method, path of headers and message.
async fn http(answer: impl Fn(&str, &str, Option<Value>) -> (u16, String, String) + Send + Sync + 'static) -> Reached {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                loop {
                    let (mut head, mut length) = (String::new(), 0);
                    loop {
                        let before = head.len();
                        match stream.read_line(&mut head).await {
                            Ok(read) if read > 0 => {}
                            _ => return,
                        }
                        let line = head[before..].trim().to_ascii_lowercase();
                        if let Some(value) = line.strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                        if line.is_empty() {
                            break;
                        }
                    }
                    let mut body = vec![0; length];
                    stream.read_exact(&mut body).await.unwrap();
                    let method = head.split(' ').next().unwrap_or_default().to_owned();
                    let (status, kind, text) = answer(&method, &head, serde_json::from_slice(&body).ok());
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nmcp-session-id: abc\r\ncontent-length: {}\r\n\r\n",
                        text.len()
                    );
                    stream.write_all((head + &text).as_bytes()).await.unwrap();
                }
            });
        }
    });
    Reached::Http { url, headers: vec![("Authorization".to_owned(), "Bearer t".to_owned())] }
}

/// What a server that behaves answers.
fn behaves(message: &Value) -> Value {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        _ => json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}),
    };
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

#[tokio::test]
async fn a_server_over_http_answers_as_json_or_as_a_stream() {
    for is_stream in [false, true] {
        let reached = http(move |method, head, message| {
            let message = message.unwrap_or_default();
            assert!(head.to_ascii_lowercase().contains("authorization: bearer t"), "{head}");
            match method {
                "POST" if message.get("id").is_none() => (202, "text/plain".to_owned(), String::new()),
                "POST" if is_stream => {
                    let text = format!(": ping\n\nevent: message\ndata: {}\n\n", behaves(&message));
                    (200, "text/event-stream".to_owned(), text)
                }
                "POST" => (200, "application/json; charset=utf-8".to_owned(), behaves(&message).to_string()),
                _ => (405, "text/plain".to_owned(), String::new()),
            }
        });
        let stand = Stand::ready(definition(reached.await)).await;
        assert_eq!(stand.told(), [""; 0]);
        assert_eq!(stand.call("echo").await, ToolOutput::text("hello"));
        stand.servers.close().await;
    }
}

#[tokio::test]
async fn servers_over_http_that_do_not_behave_are_told() {
    type Answer = fn(Value) -> (u16, String, String);
    let cases: [(Answer, &str); 4] = [
        (|_| (401, "text/plain".to_owned(), "go away".to_owned()), "it wants credentials, in `headers`"),
        (|_| (500, "text/plain".to_owned(), "out of order".to_owned()), "500 Internal Server Error: out of order"),
        (|_| (200, "application/json".to_owned(), "{}".to_owned()), "it is no message of MCP"),
        (|_| (302, "text/plain".to_owned(), String::new()), "302 Found"),
    ];
    for (answer, expected) in cases {
        let stand =
            Stand::ready(definition(http(move |_, _, message| answer(message.unwrap_or_default())).await)).await;
        let told = stand.told();
        assert!(told.len() == 1 && told[0].contains(expected), "{expected}: {told:?}");
    }
    // What answers no more fails each call, and nothing else.
    let reached = http(|_, _, message| match message.unwrap_or_default() {
        message if message["method"] == "tools/call" => (503, "text/plain".to_owned(), String::new()),
        message if message.get("id").is_none() => (202, "text/plain".to_owned(), String::new()),
        message => (200, "application/json".to_owned(), behaves(&message).to_string()),
    });
    let stand = Stand::ready(definition(reached.await)).await;
    let output = stand.call("echo").await;
    assert!(output.error.is_some() && output.text.contains("503 Service Unavailable"), "{output:?}");
}

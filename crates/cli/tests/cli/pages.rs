//! What README.md and docs/*.md show is run as it stands.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Home, Ran, Serve, ran};

/// A fenced block of a page.
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn blocks(page: &Path) -> Vec<Block> {
    blocks_of(&std::fs::read_to_string(page).unwrap())
}

pub(crate) fn blocks_of(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            blocks.push(Block { language: language.to_owned(), text: inside.join("\n") + "\n" });
        }
    }
    blocks
}

fn pages() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root().join(page)));
    pages.sort();
    pages
}

/// The name that a block gives itself in its first lines, as in `# guard.sh: …`.
pub(crate) fn name(block: &Block) -> Option<&str> {
    let said = block.text.lines().find_map(|line| line.strip_prefix("# ").or_else(|| line.strip_prefix("// ")))?;
    let word = said.split([':', ' ']).next()?;
    word.contains('.').then_some(word)
}

/// The commands of a block, and what a comment behind says about their exit code.
fn commands(block: &Block) -> Vec<(String, i32)> {
    let lines = block.text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (command, comment) = line.split_once("  #").unwrap_or((line, ""));
            let code = comment.split_once("exit ").and_then(|(_, rest)| rest.get(..1)?.parse().ok());
            (command.trim().to_owned(), code.unwrap_or(0))
        })
        .collect()
}

/// Files with keys, and scripts of upstreams, that a text names, and something that they may hold.
fn named_files(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split([' ', ',', '"']).filter_map(|word| match word.strip_prefix("replay:") {
        Some(script) => Some((script, "[]")).filter(|(script, _)| !script.is_empty()),
        None => Some((word, "key")).filter(|(word, _)| word.ends_with(".key")),
    })
}

/// Python files that a text names as modules.
fn python_files(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split("module: ").skip(1).filter_map(|rest| rest.split([',', ' ', '\n']).next());
    words.filter(|word| word.ends_with(".py"))
}

/// Files of other systems that a text imports.
fn imported_files(text: &str) -> impl Iterator<Item = &str> {
    let imports = text.split_once("import:").map_or("", |(_, rest)| rest);
    imports.split("file: ").skip(1).filter_map(|rest| rest.split([',', ' ', '}']).next())
}

/// Variables that a text reads as `${env.NAME}`.
fn variables(text: &str) -> BTreeSet<String> {
    text.split("${env.").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.to_owned())).collect()
}

pub(crate) fn shell(home: &Home, line: &str) -> Ran {
    ran(home.command("/bin/sh").args(["-c", line]))
}

/// The readme's files, in a folder of their own.
fn readme() -> (Home, Vec<Block>) {
    let home = Home::new();
    let blocks = blocks(&root().join("README.md"));
    for block in &blocks {
        if let Some(name) = name(block) {
            home.file(name, &block.text);
        }
    }
    (home, blocks)
}

#[test]
fn the_readmes_commands_do_what_it_says() {
    let (home, blocks) = readme();
    let mut tried = 0;
    for (line, code) in blocks.iter().filter(|block| block.language == "sh" && name(block).is_none()).flat_map(commands)
    {
        let line = match line.strip_prefix("cargo run --release -- ") {
            Some(rest) => format!("gatehook {rest}"),
            None if line.starts_with("cargo ") || line.contains("gatehook serve") || line.starts_with("curl ") => {
                continue;
            }
            None => line,
        };
        let ran = shell(&home, &line);
        assert_eq!(ran.code, code, "{line}: {}", ran.shown());
        tried += 1;
    }
    assert!(tried >= 4, "only {tried} commands were found");
}

#[test]
fn the_readmes_guard_denies() {
    let (home, _) = readme();
    assert_eq!(shell(&home, "chmod +x guard.sh").code, 0);
    let ran = shell(&home, "gatehook hooks test pre_inference --config gatehook.yaml --set prompt='the launch codes'");
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.out.contains("message: launch codes stay here"), "{}", ran.shown());
}

#[test]
fn the_readmes_gateway_serves_its_curl_line_and_guards() {
    let (home, blocks) = readme();
    assert_eq!(shell(&home, "chmod +x guard.sh").code, 0);
    let lines: Vec<String> = blocks.iter().flat_map(commands).map(|(line, _)| line).collect();
    let serve = lines.iter().find_map(|line| line.strip_prefix("gatehook serve ")).unwrap();
    let args: Vec<&str> = serve.split(' ').chain(["--upstream", "replay:"]).collect();
    let serve = Serve::start(&home, &args);
    let curl = lines.iter().find(|line| line.starts_with("curl ")).unwrap();
    let body = curl.split('\'').nth(1).unwrap();
    let path = curl.split_once("11435").and_then(|(_, rest)| rest.split(' ').next()).unwrap();
    assert_eq!(serve.post(path, body).0, 200, "{curl}");
    let (status, answer) = serve.chat("the launch codes, please");
    assert_eq!(status, 400, "{answer}");
    assert!(answer.contains("launch codes stay here"), "{answer}");
}

#[test]
fn the_readmes_variable_alone_makes_a_gateway() {
    let (home, blocks) = readme();
    let lines: Vec<String> = blocks.iter().flat_map(commands).map(|(line, _)| line).collect();
    let line = lines.iter().find(|line| line.starts_with("OLLAMA_HOOK")).unwrap();
    let (variable, command) = line.split_once(' ').unwrap();
    let (variable, value) = variable.split_once('=').unwrap();
    assert_eq!(command, "gatehook serve");
    let mut serve = Serve::start_command(home.gatehook().args(["serve", "--upstream", "replay:"]).env(variable, value));
    serve.line("hooks in force hooks=1");
}

/// A program of a page that waits for requests; dropping it ends it.
pub(crate) struct Running(Child);

impl Running {
    /// Once it has said something.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What a client of chat completions has gathered, and how it ended.
fn gathered(stream: &str) -> (String, String, String) {
    let chunks = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let said = |chunks: &[Value], pointer: &str| {
        chunks.iter().filter_map(|chunk| chunk.pointer(pointer)?.as_str()).collect::<String>()
    };
    let chunks: Vec<Value> = chunks.collect();
    let of = |key: &str| said(&chunks, &format!("/choices/0/{key}"));
    (of("delta/content"), of("delta/refusal"), of("finish_reason"))
}

#[test]
fn the_guard_of_the_page_on_streams_does_what_it_says() {
    let home = Home::new();
    let blocks = blocks(&root().join("docs/streams.md"));
    let port = free_port().to_string();
    for block in blocks.iter().filter(|block| name(block).is_some()) {
        home.file(name(block).unwrap(), &block.text.replace("9102", &port));
    }
    let _guard = Running::start(home.command("python3").arg("guard.py").stderr(Stdio::null()));
    let serve = Serve::start(&home, &["--config", "gatehook.yaml"]);
    let lines: Vec<String> = blocks.iter().flat_map(commands).map(|(line, _)| line).collect();
    let bodies: Vec<&str> = lines.iter().filter_map(|line| line.split('\'').nth(1)).collect();
    let [secret, falcon] = bodies[..] else { panic!("{bodies:?}") };
    let answer = |body| {
        let (status, stream) = serve.post("/v1/chat/completions", body);
        assert_eq!(status, 200, "{stream}");
        gathered(&stream)
    };
    assert_eq!(answer(secret), ("You said: my key is [REDACTED], is it not?".into(), String::new(), "stop".into()));
    let (text, refusal, end) = answer(falcon);
    assert!(text.starts_with("You said: a long answer leaves") && !text.contains("falcon"), "{text}");
    assert_eq!((refusal.as_str(), end.as_str()), ("That is internal.", "stop"));
}

/// A key that requests may be signed with.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn the_guard_of_the_page_on_webhooks_answers_who_signs_and_is_understood() {
    let home = Home::new();
    let blocks = blocks(&root().join("docs/webhooks.md"));
    let port = free_port().to_string();
    for block in blocks.iter().filter(|block| name(block).is_some()) {
        home.file(name(block).unwrap(), &block.text.replace("9103", &port));
    }
    let mut guard = home.command("python3");
    let _guard = Running::start(guard.arg("guard.py").env("GUARD_SECRET", SECRET).stderr(Stdio::null()));
    let serve = |secret: &str| {
        let mut command = home.gatehook();
        Serve::start_command(command.args(["serve", "--config", "gatehook.yaml"]).env("GUARD_SECRET", secret))
    };
    let lines: Vec<String> = blocks.iter().flat_map(commands).map(|(line, _)| line).collect();
    let curls = lines.iter().filter(|line| line.starts_with("curl "));
    let bodies: Vec<&str> = curls.filter_map(|line| line.split('\'').nth(1)).collect();
    let [masked, refused] = bodies[..] else { panic!("{bodies:?}") };
    let signed = serve(SECRET);
    let (status, answer) = signed.post("/v1/chat/completions", masked);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("[NAME] asks for the weather") && !answer.contains("Ann"), "{answer}");
    let (status, answer) = signed.post("/v1/chat/completions", refused);
    assert_eq!(status, 400, "{answer}");
    assert!(answer.contains("That is internal."), "{answer}");
    // The guard does not judge for strangers, and what is not judged does not pass.
    let stranger = serve("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert_eq!(stranger.post("/v1/chat/completions", masked).0, 503);
}

#[test]
fn every_configuration_on_a_page_is_in_order() {
    let mut tried = 0;
    for page in pages() {
        // A list is a file of answers, not a configuration.
        for block in blocks(&page).iter().filter(|block| !block.text.starts_with("- ")) {
            let Some(extension) = ["yaml", "toml"].into_iter().find(|known| block.language == *known) else { continue };
            let home = Home::new();
            home.file(&format!("snippet.{extension}"), &block.text);
            named_files(&block.text).for_each(|(name, text)| drop(home.file(name, text)));
            python_files(&block.text).for_each(|name| drop(home.file(name, "")));
            imported_files(&block.text).for_each(|name| drop(home.file(name, "{\"hooks\": {}}")));
            let mut command = home.gatehook();
            command.args(["hooks", "check", &format!("snippet.{extension}")]);
            let value = |name: &String| if name.ends_with("SECRET") { SECRET } else { "x" };
            command.envs(variables(&block.text).into_iter().map(|name| (name.clone(), value(&name))));
            let ran = ran(&mut command);
            assert_eq!(ran.code, 0, "{}:\n{}\n{}", page.display(), block.text, ran.shown());
            tried += 1;
        }
    }
    assert!(tried >= 3, "only {tried} configurations were found");
}

#[test]
fn every_command_line_on_a_page_is_one() {
    let home = Home::new();
    let mut tried = 0;
    for page in pages() {
        for block in blocks(&page).iter().filter(|block| block.language == "sh" && name(block).is_none()) {
            for (line, _) in commands(block) {
                let Some((before, command)) = line.split_once("gatehook ").filter(|(before, _)| {
                    before.is_empty() || before.ends_with(' ') && before.starts_with(|c: char| c.is_uppercase())
                }) else {
                    continue;
                };
                // The line is read up to `--help`, and nothing is done.
                let ran = shell(&home, &format!("{before}gatehook {command} --help"));
                assert_eq!(ran.code, 0, "{}: {line}: {}", page.display(), ran.shown());
                tried += 1;
            }
        }
    }
    assert!(tried >= 5, "only {tried} command lines were found");
}

/// The names by which a page's headings are linked to.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let folder = page.parent().unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let (target, anchor) = link.split_once('#').map_or((link, None), |(target, anchor)| (target, Some(anchor)));
            let target = if target.is_empty() { page.clone() } else { folder.join(target) };
            assert!(target.exists(), "{}: {link}", page.display());
            let there = anchor.is_none_or(|anchor| anchors(&target).contains(anchor));
            assert!(there, "{}: {link} has no such heading", page.display());
        }
    }
}

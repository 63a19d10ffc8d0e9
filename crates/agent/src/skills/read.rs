//! A `SKILL.md`: what stands between its two lines of `---`, and the text after it.

use std::sync::Arc;

use gatehook_engine::HooksConfig;
use gatehook_engine::config::{
    ConfigError, Context, Diagnostic, DiagnosticKind as Kind, Diagnostics, Document, Field, Format, Key, Node,
    ReadOptions, Section, Shape, Value, did_you_mean, read_hooks,
};

/// Bytes of a file.
pub const MAX_BYTES: usize = 256 << 10;
/// Characters of a name.
const MAX_NAME: usize = 64;
/// Characters of a description.
const MAX_DESCRIPTION: usize = 1024;

/// What is read of it. Other programs have fields of their own there, which are theirs.
const FRONT_MATTER: &[Field] = &[
    Field::new("name", Shape::Name, "Its name.").default("that of its folder"),
    Field::new("description", Shape::Text, "What it is good for."),
    Field::new("event", Shape::Text, "The event of `hooks`, where that is a list."),
    Field::new("hooks", Shape::Any, "Hooks that are in force while it is followed."),
    Field::new("disable-model-invocation", Shape::Bool, "The user alone may call it.").default("false"),
];

/// A skill as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillFile {
    /// Its name.
    pub name: Arc<str>,
    /// What it is good for.
    pub description: Arc<str>,
    /// What an agent is to do.
    pub text: Arc<str>,
    /// The model is told of it, and may follow it unasked.
    pub is_listed: bool,
    /// Its hooks; each says in its origin whose it is.
    pub hooks: HooksConfig,
}

/// Reads the file that is shown as `shown`, of a folder called `folder`.
///
/// ```
/// use gatehook_agent::skills::read;
/// use gatehook_engine::config::ReadOptions;
///
/// let text = "---\ndescription: Deploys the site.\n---\nBuild, then copy.\n";
/// let skill = read("deploy/SKILL.md", text, "deploy", &ReadOptions::default()).unwrap();
/// assert_eq!((&*skill.name, &*skill.text), ("deploy", "Build, then copy."));
///
/// let wrong = read("x/SKILL.md", "---\nhook: {}\n---\n", "x", &ReadOptions::default()).unwrap_err();
/// assert!(wrong.to_string().starts_with("x/SKILL.md:2:1: "), "{wrong}");
/// ```
pub fn read(shown: &str, text: &str, folder: &str, options: &ReadOptions<'_>) -> Result<SkillFile, ConfigError> {
    if text.len() > MAX_BYTES {
        let problem = Diagnostic::new(Kind::TooLarge, "", format!("a skill has no more than {MAX_BYTES} bytes"));
        return Err(ConfigError::one(shown, "", problem));
    }
    let Some((front, body)) = parts(text) else {
        let problem =
            Diagnostic::new(Kind::Syntax, "", "a skill begins with a line `---`, and a second one ends its fields");
        return Err(ConfigError::one(shown, "", problem.help("as in `---`, `description: What it is for`, `---`")));
    };
    let document = Document::parse(shown, front, Format::Yaml)?;
    let diagnostics = Diagnostics::new();
    let context = Context { document: &document, diagnostics: &diagnostics };
    let skill =
        Section::open(context, &document.root, "", FRONT_MATTER).map(|root| skill(&root, body, folder, options));
    let skill = diagnostics.finish(&document, skill)?;
    skill.ok_or_else(|| {
        ConfigError::one(shown, "", Diagnostic::new(Kind::FieldRequired, "", "a skill needs a `description`"))
    })
}

/// The fields with the line above them, so that places are those of the file, and the text.
fn parts(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_fence = line.trim_end() == "---";
        match (number, is_fence) {
            (0, false) => return None,
            (0, true) | (_, false) => at += line.len(),
            (_, true) => return Some((text.get(..at)?, text.get(at + line.len()..)?)),
        }
    }
    None
}

fn skill(root: &Section<'_>, body: &str, folder: &str, options: &ReadOptions<'_>) -> SkillFile {
    // A guard must not be lost by a slip.
    root.refuse_unknown(|name| did_you_mean(name, ["hooks", "event"]).is_none());
    let name = root.name("name").unwrap_or_else(|| folder.to_owned());
    if !is_name(&name) {
        let message = format!(
            "a skill's name has up to {MAX_NAME} letters, digits, `-`, `_`, `.` and begins with one of the first two"
        );
        let place = if root.node("name").is_some() { root.place("name") } else { root.head() };
        root.report(root.problem(Kind::InvalidValue, message).at(place));
    }
    root.require("description");
    let description = root.text("description").unwrap_or_default().trim();
    if description.chars().count() > MAX_DESCRIPTION {
        let message = format!("`description` has no more than {MAX_DESCRIPTION} characters");
        root.report(root.problem(Kind::TooLarge, message).at(root.place("description")));
    }
    let name: Arc<str> = name.into();
    let mut hooks = hooks(root, options);
    hooks.hooks_mut().for_each(|hook| hook.origin.skill = Some(name.clone()));
    let is_listed = !root.bool("disable-model-invocation").unwrap_or(false);
    SkillFile { name, description: description.into(), text: body.trim().into(), is_listed, hooks }
}

/// What stands at `hooks`: as in any native file, or the hooks of the one event that `event` names.
fn hooks(root: &Section<'_>, options: &ReadOptions<'_>) -> HooksConfig {
    let Context { document, diagnostics } = root.context;
    match (root.text("event"), root.node("hooks")) {
        (None, None) => HooksConfig::default(),
        (None, Some(node)) => read_hooks(document, node, options, diagnostics),
        (Some(event), Some(node)) => {
            let key = Key { text: event.to_owned(), span: root.place("event") };
            let all = Node { span: node.span.clone(), value: Value::Map(vec![(key, node.clone())]) };
            read_hooks(document, &all, options, diagnostics)
        }
        (Some(_), None) => {
            let problem = root.problem(Kind::FieldRequired, "an `event` needs `hooks`, a list of them");
            root.report(problem.at(root.place("event")));
            HooksConfig::default()
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_in = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= MAX_NAME && name.chars().all(is_in)
}

#[cfg(test)]
mod tests {
    use gatehook_engine::definition::Source;
    use gatehook_engine::events::Event;
    use proptest::prelude::*;

    use super::*;

    fn read_it(text: &str) -> Result<SkillFile, ConfigError> {
        let options = ReadOptions { source: Source::Workspace, ..ReadOptions::default() };
        read("s/SKILL.md", text, "s", &options)
    }

    #[test]
    fn a_skill_is_what_its_fields_and_its_text_say() {
        let skill = read_it(
            "\u{feff}---\r\nname: deploy\ndescription: Deploys.\nlicense: MIT\nallowed-tools: Bash\n---\r\n\nDo it.\n---\nMore.\n",
        );
        let skill = skill.unwrap();
        assert_eq!((&*skill.name, &*skill.description, skill.is_listed), ("deploy", "Deploys.", true));
        assert_eq!(&*skill.text, "Do it.\n---\nMore.");
        assert!(skill.hooks.is_empty());
        let unlisted = read_it("---\ndescription: x\ndisable-model-invocation: true\n---").unwrap();
        assert_eq!((&*unlisted.name, &*unlisted.text, unlisted.is_listed), ("s", "", false));
    }

    #[test]
    fn hooks_stand_by_their_events_or_behind_one_event() {
        let hook = "[{type: command, command: exit 2}]";
        for (text, event) in [
            (format!("---\ndescription: x\nhooks: {{pre_tool_use: {hook}}}\n---\n"), Event::PreToolUse),
            (format!("---\ndescription: x\nevent: skill_trigger\nhooks: {hook}\n---\n"), Event::SkillTrigger),
        ] {
            let mut skill = read_it(&text).unwrap();
            assert_eq!(skill.hooks.groups.iter().map(|group| group.event).collect::<Vec<_>>(), [event], "{text}");
            let hook = skill.hooks.hooks_mut().next().unwrap();
            assert_eq!((hook.origin.skill.as_deref(), hook.origin.source), (Some("s"), Source::Workspace));
            assert!(hook.written.is_some() && hook.origin.line > 2);
        }
    }

    #[test]
    fn what_is_wrong_names_the_file_and_its_place() {
        let long = "x".repeat(MAX_DESCRIPTION + 1);
        for (text, part) in [
            ("".to_owned(), "s/SKILL.md: "),
            ("# A title\n".to_owned(), "begins with a line `---`"),
            ("---\ndescription: x\n".to_owned(), "begins with a line `---`"),
            ("---\n---\n".to_owned(), "must be a mapping"),
            ("---\nname: a\n---\n".to_owned(), "`description` must be set"),
            ("---\n- a\n---\n".to_owned(), "s/SKILL.md:2"),
            ("---\ndescription: [x\n---\n".to_owned(), "s/SKILL.md:"),
            ("---\ndescription: x\ndescription: y\n---\n".to_owned(), "s/SKILL.md:3:1"),
            ("---\ndescription: x\nname: ../../etc\n---\n".to_owned(), "s/SKILL.md:3:"),
            ("---\ndescription: x\nhoks: {}\n---\n".to_owned(), "did you mean `hooks`?"),
            ("---\ndescription: x\nevent: stop\n---\n".to_owned(), "needs `hooks`"),
            ("---\ndescription: x\nhooks: {PreToolUse: []}\n---\n".to_owned(), "it is called `pre_tool_use` here"),
            ("---\ndescription: x\nevent: nothing\nhooks: []\n---\n".to_owned(), "there is no event `nothing`"),
            ("---\ndescription: x\nhooks: {stop: [{type: command}]}\n---\n".to_owned(), "s/SKILL.md:3:"),
            (format!("---\ndescription: {long}\n---\n"), "no more than 1024"),
            (format!("---\ndescription: x\n---\n{}", "y".repeat(MAX_BYTES)), "no more than 262144 bytes"),
        ] {
            let error = read_it(&text).map(|skill| skill.name).unwrap_err().to_string();
            assert!(error.contains("s/SKILL.md") && error.contains(part), "{text:.80}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_skill_or_says_why_not(text in "(---\n)?([a-z]{0,11}[:=\\-\\[{&*'\" #\u{e9}]{0,2}[a-z]{0,5}\n){0,8}(---\n)?.{0,20}") {
            if let Err(error) = read_it(&text) {
                prop_assert!(error.to_string().contains("s/SKILL.md"));
            }
        }

        #[test]
        fn the_text_is_what_follows_the_second_line(body in "[ -~\n]{0,60}") {
            let skill = read_it(&format!("---\ndescription: x\n---\n{body}")).unwrap();
            prop_assert_eq!(&*skill.text, body.trim());
        }
    }
}

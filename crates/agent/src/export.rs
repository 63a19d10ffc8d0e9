//! A conversation for others to read: as JSON lines for programs, as Markdown for people.

use std::fmt::Write;

use gatehook_engine::events::Message;
use gatehook_engine::events::journal::SessionHead;

use crate::conversation::Conversation;

/// One message a line, all that were not undone, in OpenAI's form. It is what hooks find at `transcript_path`.
pub fn to_json_lines(conversation: &Conversation) -> serde_json::Result<String> {
    conversation.all().iter().map(Message::to_line).collect()
}

/// A document: what the session is, and a section for each speaker in turn. Texts stand in it as they were said; what
/// tools were given and answered stands in fences that it cannot break out of.
pub fn to_markdown(head: &SessionHead, conversation: &Conversation) -> String {
    let mut page = Page::default();
    page.line(&format!("# Session {}\n", head.id));
    let spent = conversation.spent();
    for (name, value) in [
        ("Workspace", code(&head.workspace)),
        ("Agent", conversation.agent().to_string()),
        ("Model", conversation.model().to_string()),
        ("Turns", conversation.turn().to_string()),
        ("Tokens", format!("{} in, {} out", spent.input_tokens, spent.output_tokens)),
        ("Cost", spent.cost.map(|cost| format!("{cost:.4}")).unwrap_or_default()),
    ] {
        if !value.is_empty() {
            page.line(&format!("- {name}: {value}"));
        }
    }
    for (at, message) in conversation.all().iter().enumerate() {
        for compaction in conversation.compactions().iter().filter(|compaction| compaction.from == at && at > 0) {
            page.compaction(&compaction.summary);
        }
        page.message(message);
    }
    let end = conversation.all().len();
    for compaction in conversation.compactions().iter().filter(|compaction| compaction.from == end && end > 0) {
        page.compaction(&compaction.summary);
    }
    page.text
}

#[derive(Debug, Default)]
struct Page {
    text: String,
    speaker: &'static str,
}

impl Page {
    fn message(&mut self, message: &Message) {
        match &*message.role {
            "tool" => {
                let text = message.content.as_deref().unwrap_or_default();
                self.paragraph("Result:");
                self.fence("", text);
            }
            role => {
                self.heading(role);
                if let Some(thinking) = message.thinking.as_deref().filter(|text| !text.is_empty()) {
                    self.quote(thinking);
                }
                if let Some(text) = message.content.as_deref().filter(|text| !text.is_empty()) {
                    self.paragraph(text);
                }
            }
        }
        for image in message.images.iter().flatten() {
            self.paragraph(&format!("Image: {} ({} bytes)", code(&image.sha256), image.bytes));
        }
        for call in message.tool_calls.iter().flatten() {
            self.paragraph(&format!("Calls {}:", code(&call.function.name)));
            self.fence("json", &call.function.arguments);
        }
    }

    /// The speaker's, where it is another one than before.
    fn heading(&mut self, role: &str) {
        let speaker = match role {
            "user" => "User",
            "assistant" => "Assistant",
            "system" | "developer" => "System",
            _ => "Other",
        };
        if speaker != self.speaker {
            self.speaker = speaker;
            self.paragraph(&format!("## {speaker}"));
        }
    }

    fn compaction(&mut self, summary: &str) {
        self.speaker = "";
        self.paragraph("## Summary of what stands above");
        self.paragraph(summary);
    }

    fn quote(&mut self, text: &str) {
        let lines: Vec<String> =
            text.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
        self.paragraph(&lines.join("\n"));
    }

    /// A fence that is longer than any in the text.
    fn fence(&mut self, language: &str, text: &str) {
        let fence = "`".repeat(longest_run(text).max(2) + 1);
        self.paragraph(&format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n')));
    }

    fn paragraph(&mut self, text: &str) {
        self.text.push('\n');
        self.line(text.trim_end());
    }

    fn line(&mut self, text: &str) {
        // A string takes everything that is written to it.
        let _ = writeln!(self.text, "{text}");
    }
}

/// A span of code, whatever is in it.
fn code(text: &str) -> String {
    let text = text.replace('\n', " ");
    match longest_run(&text) {
        0 => format!("`{text}`"),
        longest => {
            let ticks = "`".repeat(longest + 1);
            format!("{ticks} {text} {ticks}")
        }
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::tests::{calls, compacted, end, head, message, result, said, turn};

    #[test]
    fn every_message_that_stands_is_a_line() {
        let entries =
            [message("user", "hi\nyou"), calls("", &["a"]), result("a", "1"), compacted("sum", 0), said("he")];
        let mut conversation = Conversation::of(&head(), &entries);
        conversation.close();
        let lines = to_json_lines(&conversation).unwrap();
        let read: Vec<Message> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, conversation.all());
        assert!(lines.ends_with('\n'));
    }

    #[test]
    fn a_page_says_who_said_what() {
        let mut thoughtful = Message::new("assistant", "**Done.**");
        thoughtful.thinking = Some("hm\nso".into());
        let entries = [
            turn(1),
            message("user", "list it"),
            calls("I look.", &["a"]),
            result("a", "```\nfile\n```\n"),
            gatehook_engine::events::Entry::Message { message: thoughtful },
            end(),
            compacted("It was listed.", 0),
            turn(2),
            message("user", "thanks"),
            end(),
        ];
        let page = to_markdown(&head(), &Conversation::of(&head(), &entries));
        let expected = "# Session s-1\n\n- Workspace: `/project`\n- Agent: root\n- Model: ollama/llama3\n- Turns: 2\n\
            - Tokens: 0 in, 0 out\n\n## User\n\nlist it\n\n## Assistant\n\nI look.\n\nCalls `shell`:\n\n```json\n\
            {\"cmd\":\"ls\"}\n```\n\nResult:\n\n````\n```\nfile\n```\n````\n\n> hm\n> so\n\n**Done.**\n\n\
            ## Summary of what stands above\n\nIt was listed.\n\n## User\n\nthanks\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn a_span_of_code_ends_where_it_should() {
        assert_eq!([code("a"), code("a`b"), code("``")], ["`a`", "`` a`b ``", "``` `` ```"]);
    }
}

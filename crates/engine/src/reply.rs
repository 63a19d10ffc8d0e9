//! Reads what a hook answered: exit codes, and one JSON object or plain text on stdout.
//!
//! [`parse`] reads the object; `strict` checks it against what its event honours, in docker-agent's order.

mod known;
mod parse;
mod strict;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use gatehook_events::dialect::Printed;
pub(crate) use gatehook_events::dialect::Said;
use gatehook_events::{Event, FailureKind, Output, Profile, TokenUsage};

use crate::compiled::Hook;
use crate::handler::{HandlerError, Judgement, Reply};

use parse::{Decoded, WrongWords, decode};
pub use parse::{Fault, parse};

/// What one hook answered, as far as it can be told without the others.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) said: Said,
    /// Its exit code; -1 for a failure without one.
    pub(crate) exit_code: i32,
    pub(crate) stderr: String,
    pub(crate) spent: Spent,
}

/// What it took to ask a model.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) usage: Option<TokenUsage>,
    pub(crate) cost: Option<f64>,
    /// It was not asked: it had judged the same before.
    pub(crate) recalled: bool,
}

impl Spent {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let usage = |a: TokenUsage, b: TokenUsage| TokenUsage {
            input_tokens: a.input_tokens.saturating_add(b.input_tokens),
            output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        };
        Self {
            usage: self.usage.zip(other.usage).map(|(a, b)| usage(a, b)).or(self.usage).or(other.usage),
            cost: self.cost.zip(other.cost).map(|(a, b)| a + b).or(self.cost).or(other.cost),
            recalled: other.recalled,
        }
    }
}

impl Answer {
    fn new(said: Said) -> Self {
        let exit_code = if matches!(said, Said::Failed(..)) { -1 } else { 0 };
        Self { said, exit_code, stderr: String::new(), spent: Spent::default() }
    }

    fn fault(fault: Fault) -> Self {
        Self::new(Said::Failed(fault.kind, fault.message))
    }

    pub(crate) fn nothing() -> Self {
        Self::new(Said::Nothing)
    }

    pub(crate) fn failed(error: HandlerError) -> Self {
        Self { stderr: error.stderr, ..Self::new(Said::Failed(error.kind, error.message)) }
    }

    pub(crate) fn unsupported_rewrite(why: String) -> Self {
        Self::new(Said::Failed(FailureKind::UnsupportedRewrite, why))
    }

    /// The object whose rewrites count.
    pub(crate) fn output(&mut self) -> Option<&mut Output> {
        match &mut self.said {
            Said::Output(output) => Some(output),
            _ => None,
        }
    }

    /// Changes the object; an answer without one gets one.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Output)) {
        let mut output = match std::mem::replace(&mut self.said, Said::Nothing) {
            Said::Output(output) => output,
            _ => Box::default(),
        };
        change(&mut output);
        self.said = Said::Output(output);
    }
}

/// Reads a reply by the rules of the hook's profile.
pub(crate) fn read(reply: Reply, event: Event, hook: &Hook) -> Answer {
    match reply {
        Reply::Direct(None) if hook.definition.profile.spec().silence_fails => {
            Answer::new(Said::Failed(FailureKind::NoReply, "it said nothing, and an answer is due".to_owned()))
        }
        Reply::Direct(None) => Answer::new(Said::Nothing),
        Reply::Direct(Some(output)) => checked(Decoded { output, wrong: WrongWords::default() }, event, hook),
        Reply::Judged(judgement) => {
            let Judgement { answer, usage, cost, recalled } = *judgement;
            let answer = match answer {
                Ok(output) => read(Reply::Direct(output), event, hook),
                Err(error) => Answer::failed(error),
            };
            Answer { spent: Spent { usage, cost, recalled }, ..answer }
        }
        Reply::Process { stdout, stderr, exit_code } if let Some(dialect) = &hook.dialect => {
            let said = dialect.read_reply(event, &Printed { stdout: &stdout, stderr: &stderr, exit_code });
            let answer = Answer::new(said);
            Answer { exit_code: if exit_code == 0 { answer.exit_code } else { exit_code }, stderr, ..answer }
        }
        Reply::Process { stdout, stderr, exit_code } => {
            let answer = match exit_code {
                0 => printed(&stdout, event, hook),
                2 => Answer::new(Said::Block(addition(&stdout, hook))),
                code => Answer::new(Said::Failed(FailureKind::NonzeroExit, ending(code))),
            };
            Answer { exit_code: if exit_code == 0 { answer.exit_code } else { exit_code }, stderr, ..answer }
        }
    }
}

fn ending(code: i32) -> String {
    if code < 0 { "it was ended by a signal".to_owned() } else { format!("it exited with code {code}") }
}

/// stdout of a hook that ended well.
fn printed(stdout: &Bytes, event: Event, hook: &Hook) -> Answer {
    let (profile, strict) = (hook.definition.profile, hook.definition.strict_output);
    let text = trimmed(stdout);
    if text.first() == Some(&b'{') {
        return match decode(text, profile, strict) {
            Ok(decoded) => checked(decoded, event, hook),
            Err(fault) if profile.spec().lenient_replies && fault.is_undecodable() => plain_text(text),
            Err(fault) => Answer::fault(fault),
        };
    }
    match plain_text(text) {
        Answer { said: Said::Text(_), .. } if strict => {
            Answer::fault(Fault::new(FailureKind::StrictNonObject, "`strict_output` wants a JSON object"))
        }
        answer => answer,
    }
}

/// Without blank characters at both ends, as Unicode has them.
fn trimmed(text: &[u8]) -> &[u8] {
    std::str::from_utf8(text).map_or_else(|_| text.trim_ascii(), |text| text.trim().as_bytes())
}

fn plain_text(text: &[u8]) -> Answer {
    match String::from_utf8_lossy(text).trim() {
        "" => Answer::new(Said::Nothing),
        text => Answer::new(Said::Text(text.to_owned())),
    }
}

/// What a hook that blocks by its exit code adds on stdout; docker-agent does not look there.
fn addition(stdout: &Bytes, hook: &Hook) -> Option<Box<Output>> {
    let text = trimmed(stdout);
    if hook.definition.profile != Profile::Native || text.first() != Some(&b'{') {
        return None;
    }
    // It blocks already: what cannot be read takes nothing from that.
    parse(text, Profile::Native, false).ok().map(Box::new)
}

fn checked(decoded: Decoded, event: Event, hook: &Hook) -> Answer {
    let Decoded { output, wrong } = decoded;
    let definition = &hook.definition;
    let rules =
        strict::Rules { strict: definition.strict_output, profile: definition.profile, able: &hook.capabilities };
    match rules.check(&output, wrong, event) {
        Ok(()) => Answer::new(Said::Output(Box::new(output))),
        Err(fault) => Answer::fault(fault),
    }
}

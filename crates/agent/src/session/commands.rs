//! Prompts that have a name: `/name`, and what the user says behind it.

use super::Session;
use super::context::add;
use super::end::End;

impl Session {
    /// The prompt that such a text stands for; the agent that it is for has the word from then on. Any other text stands
    /// for itself.
    pub(super) async fn commanded(&mut self, text: &str) -> Result<String, End> {
        let called =
            text.strip_prefix('/').map(|called| called.split_once(char::is_whitespace).unwrap_or((called, "")));
        let known = called.and_then(|(name, rest)| Some((self.cast.agent.commands.get(name)?.clone(), rest)));
        let Some((command, rest)) = known else { return Ok(text.to_owned()) };
        if let Some(agent) = &command.agent {
            self.set_agent(agent).await?;
        }
        let mut prompt = command.instruction;
        add(&mut prompt, rest);
        Ok(prompt)
    }
}

//! What the hooks of one event are shown: the input, with image data only for those that asked for it.

use std::sync::{Arc, OnceLock};

use gatehook_events::{Dialect, Event, Input, Message, Profile};

use crate::compiled::Hook;
use crate::handler::Payload;

/// The two views of one input, each made on first use, and each in the words of every profile that asks for it.
pub(crate) struct Shown {
    payload: Payload,
    bare: OnceLock<Option<(Box<Input>, Payload)>>,
    foreign: Foreign,
    bare_foreign: Foreign,
}

/// The payloads of foreign profiles, as many as there are.
#[derive(Default)]
struct Foreign(OnceLock<Box<(Profile, Payload, Foreign)>>);

impl Foreign {
    fn of(&self, native: &Payload, dialect: &Arc<dyn Dialect>) -> &Payload {
        let made = || Box::new((dialect.profile(), native.spoken(dialect, None), Foreign::default()));
        let (profile, payload, others) = &**self.0.get_or_init(made);
        if *profile == dialect.profile() { payload } else { others.of(native, dialect) }
    }
}

/// The payload of one hook: one that it shares with others, or its own.
pub(crate) enum Told<'a> {
    Shared(&'a Payload),
    Own(Box<Payload>),
}

impl Told<'_> {
    pub(crate) fn payload(&self) -> &Payload {
        match self {
            Told::Shared(payload) => payload,
            Told::Own(payload) => payload,
        }
    }
}

impl Shown {
    pub(crate) fn new(event: Event, cwd: Arc<str>) -> Self {
        let (foreign, bare_foreign) = Default::default();
        Self { payload: Payload::new(event, cwd), bare: OnceLock::new(), foreign, bare_foreign }
    }

    /// What a hook is shown, with image data or without, in the words of its profile.
    pub(crate) fn to_hook<'a>(&'a self, hook: &Hook, images: bool, input: &'a Input) -> (&'a Input, Told<'a>) {
        let (input, payload, foreign) = self.view(images, input);
        let told = match &hook.dialect {
            None => Told::Shared(payload),
            Some(dialect) if dialect.names_hook() => {
                let version = hook.definition.version.clone().unwrap_or_default();
                Told::Own(Box::new(payload.spoken(dialect, Some((hook.name.clone(), version)))))
            }
            Some(dialect) => Told::Shared(foreign.of(payload, dialect)),
        };
        (input, told)
    }

    /// The view of a hook that wants image data, or does not.
    fn view<'a>(&'a self, images: bool, input: &'a Input) -> (&'a Input, &'a Payload, &'a Foreign) {
        if images {
            return (input, &self.payload, &self.foreign);
        }
        match self.bare.get_or_init(|| Some((Box::new(without_image_data(input)?), self.payload.afresh()))) {
            Some((input, payload)) => (input, payload, &self.bare_foreign),
            None => (input, &self.payload, &self.foreign),
        }
    }
}

/// A copy without image data; `None` where there is none in it.
fn without_image_data(input: &Input) -> Option<Input> {
    let messages = input.messages.as_deref()?;
    let has_data = |message: &Message| message.images.iter().flatten().any(|image| image.data.is_some());
    if !messages.iter().any(has_data) {
        return None;
    }
    let strip = |message: &Message| {
        let mut message = message.clone();
        message.images.iter_mut().flatten().for_each(|image| image.data = None);
        message
    };
    Some(Input { messages: Some(messages.iter().map(strip).collect()), ..input.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatehook_events::Image;

    #[test]
    fn image_data_is_shown_to_those_alone_who_asked_for_it() {
        let image = Image { sha256: "s".into(), media_type: String::new(), bytes: 1, data: Some("AA==".into()) };
        let message = Message { images: Some(vec![image]), ..Message::new("user", "look") };
        let input = Input { messages: Some([message].into()), ..Input::default() };
        let shown = Shown::new(Event::PreInference, "/".into());
        let data = |input: &Input| input.messages.as_ref().unwrap()[0].images.as_ref().unwrap()[0].data.clone();
        assert_eq!(data(shown.view(true, &input).0).as_deref(), Some("AA=="));
        assert_eq!(data(shown.view(false, &input).0), None);
    }
}

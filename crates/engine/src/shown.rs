//! What the hooks of one event are shown: the input, with image data only for those that asked for it.

use std::sync::{Arc, OnceLock};

use gatehook_events::{Event, Input, Message};

use crate::handler::Payload;

/// The two views of one input, each made on first use.
pub(crate) struct Shown {
    payload: Payload,
    bare: OnceLock<Option<(Box<Input>, Payload)>>,
}

impl Shown {
    pub(crate) fn new(event: Event, cwd: Arc<str>) -> Self {
        Self { payload: Payload::new(event, cwd), bare: OnceLock::new() }
    }

    /// The view of a hook that wants image data, or does not.
    pub(crate) fn to<'a>(&'a self, images: bool, input: &'a Input) -> (&'a Input, &'a Payload) {
        if images {
            return (input, &self.payload);
        }
        match self.bare.get_or_init(|| Some((Box::new(without_image_data(input)?), self.payload.afresh()))) {
            Some((input, payload)) => (input, payload),
            None => (input, &self.payload),
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
        assert_eq!(data(shown.to(true, &input).0).as_deref(), Some("AA=="));
        assert_eq!(data(shown.to(false, &input).0), None);
    }
}

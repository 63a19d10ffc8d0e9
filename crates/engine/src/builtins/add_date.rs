//! `add_date`: the model knows what day it is.

use std::sync::Arc;

use gatehook_events::{Event, Input};
use jiff::Zoned;

use super::place::Place;
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

struct AddDate(Arc<Place>);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("add_date")?;
    Ok(Judging::handler(AddDate(Place::of(arguments)?)))
}

impl Judge for AddDate {
    fn judge(&self, event: Event, _input: &Input, _: &Others) -> BuiltinResult {
        let today = Zoned::now().strftime("%Y-%m-%d").to_string();
        Ok(Some(self.0.say(event, "core/date", "Date", format!("Today's date: {today}"))))
    }
}

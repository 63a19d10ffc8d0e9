//! `add_user_info`: the model knows whom it works for.

use std::path::Path;
use std::sync::Arc;

use gatehook_events::{Event, Input};

use super::place::{Place, read};
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

const ACCOUNTS: &str = "/etc/passwd";
const ACCOUNTS_LIMIT: usize = 1 << 20;

struct AddUserInfo(Arc<Place>);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("add_user_info")?;
    Ok(Judging::handler(AddUserInfo(Place::of(arguments)?)))
}

impl Judge for AddUserInfo {
    const READS_FILES: bool = true;

    fn judge(&self, event: Event, _input: &Input, _: &Others) -> BuiltinResult {
        let accounts = read(Path::new(ACCOUNTS), ACCOUNTS_LIMIT).unwrap_or_default();
        let account = account(&accounts, rustix::process::getuid().as_raw());
        let name = account.map(|(name, _)| name).or_else(|| self.0.variable("USER"));
        let host = rustix::system::uname();
        let full = account.map(|(_, full)| full).filter(|full| !full.is_empty());
        let host = Some(host.nodename().to_string_lossy().into_owned()).filter(|host| !host.is_empty());
        let facts = [("User", name.map(str::to_owned)), ("Full name", full.map(str::to_owned)), ("Host", host)];
        let lines: Vec<String> =
            facts.into_iter().filter_map(|(what, fact)| Some(format!("- {what}: {}", fact?))).collect();
        if lines.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.0.say(event, "core/user", "User", format!("The user:\n{}", lines.join("\n")))))
    }
}

/// Name and full name of the account with this number, by the lines of `/etc/passwd`.
fn account(accounts: &str, number: u32) -> Option<(&str, &str)> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?);
        let full = fields.nth(1)?.split(',').next()?;
        (uid.parse() == Ok(number)).then_some((name, full))
    })
}

#[cfg(test)]
mod tests {
    use super::account;

    #[test]
    fn an_account_is_found_by_its_number() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\n# what\nada:x:1000:1000:Ada Lovelace,,,:/home/ada:/bin/sh\n";
        assert_eq!(account(accounts, 1000), Some(("ada", "Ada Lovelace")));
        assert_eq!(account(accounts, 0), Some(("root", "root")));
        assert_eq!(account(accounts, 7), None);
    }
}

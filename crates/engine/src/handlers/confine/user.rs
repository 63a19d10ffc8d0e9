//! Another user's rights, by the system's `setpriv`, which gives way to the hook's program.
//!
//! It is this program, and not a thread of ours that becomes the user and starts it: whoever has the user's rights could
//! signal that thread, and by it end all of this process. Nor is it `Command::uid`, which forks. It runs as root, so it
//! is taken from the system's folders whatever `PATH` says.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::process::geteuid;

use super::wrapped;
use crate::handler::DefinitionError;
use crate::handlers::command::program::{Program, is_executable};

const SETPRIV: [&str; 4] = ["/usr/bin/setpriv", "/bin/setpriv", "/usr/sbin/setpriv", "/sbin/setpriv"];
const ACCOUNTS: &str = "/etc/passwd";

/// One row of the system's accounts.
#[derive(Debug, PartialEq, Eq)]
struct Account<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
}

type Env = BTreeMap<String, String>;

/// The program with the rights of `name`: its user, its group and no other, no capabilities. `HOME`, `USER` and `LOGNAME`
/// become its own in `env`, where they are passed on and the hook does not set them itself (`own`).
pub(super) fn around(program: Program, name: &str, own: &Env, env: &mut Env) -> Result<Program, DefinitionError> {
    let accounts = std::fs::read_to_string(ACCOUNTS).map_err(|error| wrong(&format!("{ACCOUNTS}: {error}"), ""))?;
    let Some(account) = find(&accounts, name) else {
        let message = format!("there is no account `{}` in {ACCOUNTS}", name.escape_debug());
        return Err(wrong(&message, "create it, or name another one"));
    };
    let ours = geteuid();
    if ours.as_raw() == account.uid {
        return Ok(program);
    }
    if !ours.is_root() {
        return Err(wrong("only root may run hooks as another user", "run `gatehook` as root, or leave it out"));
    }
    let Some(setpriv) = SETPRIV.into_iter().find(|path| is_executable(Path::new(path))) else {
        return Err(wrong("there is no `setpriv` on this system", "install util-linux, or leave `user` out"));
    };
    for (variable, value) in [("HOME", account.home), ("USER", account.name), ("LOGNAME", account.name)] {
        if let Some(passed) = env.get_mut(variable).filter(|_| !own.contains_key(variable)) {
            value.clone_into(passed);
        }
    }
    let (uid, gid) = (format!("--reuid={}", account.uid), format!("--regid={}", account.gid));
    let rest = ["--clear-groups", "--inh-caps=-all", "--"].map(str::to_owned);
    wrapped(program, setpriv, [uid, gid].into_iter().chain(rest).collect())
}

/// The account of a name, else of a number. A number without an account has no group that could be known.
fn find<'a>(accounts: &'a str, name: &str) -> Option<Account<'a>> {
    let rows = || accounts.lines().filter_map(account);
    let number: Option<u32> = name.parse().ok();
    rows().find(|row| row.name == name).or_else(|| rows().find(|row| Some(row.uid) == number))
}

/// `name:password:uid:gid:comment:home:shell`, <https://man7.org/linux/man-pages/man5/passwd.5.html>.
fn account(row: &str) -> Option<Account<'_>> {
    let mut fields = row.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let (_password, uid, gid, _comment) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some(Account { name, uid: uid.parse().ok()?, gid: gid.parse().ok()?, home: fields.next()? })
}

fn wrong(message: &str, help: &str) -> DefinitionError {
    let help = (!help.is_empty()).then(|| help.to_owned());
    DefinitionError { field: "user", message: message.to_owned(), help }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn an_account_is_found_by_name_then_by_number() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\n# c\nbroken:x:1\n\n7:x:70:71::/seven:\nb:x:7:8::/b:/bin/sh\n";
        let found = |name| find(accounts, name).map(|account| (account.name, account.uid, account.gid, account.home));
        assert_eq!(found("root"), Some(("root", 0, 0, "/root")));
        assert_eq!(found("7"), Some(("7", 70, 71, "/seven")));
        assert_eq!(found("70"), Some(("7", 70, 71, "/seven")));
        assert_eq!(found("b"), Some(("b", 7, 8, "/b")));
        for unknown in ["", "broken", "1", "-1", "4294967296", "x"] {
            assert_eq!(found(unknown), None, "{unknown}");
        }
    }
}

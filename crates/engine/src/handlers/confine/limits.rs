//! Limits of each process, set by `ulimit` in the shell that the child begins as: nothing of the hook runs before, and
//! nothing but a shell is needed.

use rustix::process::{Resource, getrlimit};

use super::wrapped;
use crate::definition::Confinement;
use crate::handler::DefinitionError;
use crate::handlers::command::program::{POSIX_SHELL, Program};

/// The code of a shell that cannot set a limit: a failure of its hook.
const CANNOT: &str = "exit 126";

/// The program under the limits of `confinement`. A line for `/bin/sh` is given them in front, which costs no further
/// program; any other is run by a shell that gives way to it.
pub(super) fn around(program: Program, confinement: &Confinement) -> Result<Program, DefinitionError> {
    let Some(limits) = prefix(confinement) else { return Ok(program) };
    match program.args.as_slice() {
        [option, line] if option == "-c" && program.path.as_os_str() == POSIX_SHELL => {
            let args = vec!["-c".to_owned(), format!("{limits}; {line}")];
            Ok(Program { args, ..program })
        }
        _ => {
            let line = format!("{limits}; exec \"$@\"");
            wrapped(program, POSIX_SHELL, vec!["-c".to_owned(), line, "sh".to_owned()])
        }
    }
}

/// Shell commands that set the limits, or end the shell. They stay within what this process may itself: a limit can be
/// lowered, not raised.
fn prefix(confinement: &Confinement) -> Option<String> {
    let mut commands = Vec::new();
    // In units of `ulimit` as POSIX counts them: 1,024 bytes for data, 512 bytes for files.
    // https://pubs.opengroup.org/onlinepubs/9799919799/utilities/ulimit.html
    if let Some(bytes) = confinement.max_memory {
        commands.push(format!("ulimit -d {}", at_most(bytes, Resource::Data) / 1024));
    }
    if let Some(bytes) = confinement.max_file_size {
        commands.push(format!("ulimit -f {}", at_most(bytes, Resource::Fsize) / 512));
    }
    if let Some(seconds) = confinement.max_cpu_seconds {
        let (seconds, last) = (seconds.get(), seconds.get().saturating_add(1));
        // The signal at the first one says why; SIGKILL at the second one is for who ignores it.
        commands.push(format!("ulimit -S -t {}", at_most(seconds, Resource::Cpu)));
        commands.push(format!("ulimit -H -t {}", at_most(last, Resource::Cpu)));
    }
    (!commands.is_empty()).then(|| format!("{{ {}; }} || {CANNOT}", commands.join(" && ")))
}

fn at_most(wanted: u64, resource: Resource) -> u64 {
    getrlimit(resource).maximum.map_or(wanted, |ours| ours.min(wanted))
}

#[cfg(test)]
mod unit {
    use super::*;

    fn program(path: &str, args: &[&str]) -> Program {
        Program { path: path.into(), args: args.iter().map(|&arg| arg.to_owned()).collect() }
    }

    #[test]
    fn without_limits_nothing_is_put_before_a_program() {
        let plain = || program("/bin/sh", &["-c", "exit 0"]);
        assert_eq!(around(plain(), &Confinement::default()).unwrap(), plain());
    }

    #[test]
    fn a_line_and_a_program_get_the_same_limits() {
        let limits = Confinement {
            max_memory: Some((64 << 20) + 1),
            max_file_size: Some(1000),
            max_cpu_seconds: std::num::NonZeroU64::new(2),
            ..Confinement::default()
        };
        let set = "{ ulimit -d 65536 && ulimit -f 1 && ulimit -S -t 2 && ulimit -H -t 3; } || exit 126";
        let line = around(program("/bin/sh", &["-c", "# why\nexit 0"]), &limits).unwrap();
        assert_eq!(line, program("/bin/sh", &["-c", &format!("{set}; # why\nexit 0")]));
        let other = around(program("/usr/bin/env", &["a b"]), &limits).unwrap();
        let args = ["-c", &format!("{set}; exec \"$@\""), "sh", "/usr/bin/env", "a b"];
        assert_eq!(other, program("/bin/sh", &args));
    }
}

//! Every environment variable that `gatehook` reads: one table, shown by `--help` and by the documentation.

pub(crate) use gatehook_engine::config::{OLLAMA_VARIABLES, Variable};

/// The variables that `serve` reads beside [`OLLAMA_VARIABLES`].
const OWN: &[Variable] = &[
    Variable {
        name: "OLLAMA_HOST",
        default: "http://127.0.0.1:11434",
        doc: "The upstream, where no configuration names one.",
    },
    Variable { name: "OLLAMA_ORIGINS", default: "", doc: "Browser origins let in beside those of this machine." },
    Variable { name: "GATEHOOK_CONFIG", default: "", doc: "A configuration file, as `--config`." },
    Variable { name: "GATEHOOK_LISTEN", default: "127.0.0.1:11435", doc: "The address to listen on, as `--listen`." },
    Variable { name: "GATEHOOK_LOG", default: "info", doc: "What is logged, as in `info,gatehook_gateway=debug`." },
    Variable { name: "NO_COLOR", default: "", doc: "Set to anything: no colour." },
    Variable {
        name: "DOCKER_AGENT_CONFIG_DIR",
        default: "~/.config/cagent",
        doc: "Where docker-agent's `config.yaml` and `hooks.d` are looked for; `CAGENT_CONFIG_DIR` says the same.",
    },
    Variable { name: "XDG_CONFIG_HOME", default: "~/.config", doc: "Where `gatehook/gatehook.yaml` is looked for." },
    Variable {
        name: "XDG_STATE_HOME",
        default: "~/.local/state",
        doc: "Where `gatehook/` keeps traces, sessions and approvals.",
    },
];

/// The variables that say which hooks of a project are in force.
const TRUST: &[Variable] = &[
    Variable {
        name: "GATEHOOK_TRUST_WORKSPACE",
        default: "",
        doc: "The hash of a project's hooks, as `hooks trust --json` shows it: they are in force without an approval.",
    },
    Variable { name: "XDG_STATE_HOME", default: "~/.local/state", doc: "Where `gatehook/trust.json` keeps approvals." },
    Variable {
        name: "OLLAMA_PROJECT_DIR",
        default: "the project's folder",
        doc: "Where `.ollama/settings.json` is looked for.",
    },
    Variable {
        name: "OLLAMA_HOOKS_ENABLED",
        default: "true",
        doc: "`false` switches hooks of the dialect `ollama-cli` off, but for managed ones.",
    },
];

/// The variables that `serve` reads.
pub(crate) fn serve() -> impl Iterator<Item = &'static Variable> {
    OLLAMA_VARIABLES.iter().chain(OWN)
}

/// The variables as a section of a help text. What a variable says has a line of its own, so that no terminal is too
/// narrow for it.
pub(crate) fn section() -> String {
    text_of(serve())
}

/// The same of those that say which hooks of a project are in force.
pub(crate) fn trust_section() -> String {
    text_of(TRUST)
}

fn text_of<'v>(variables: impl IntoIterator<Item = &'v Variable>) -> String {
    let mut text = String::from("Environment:\n");
    for Variable { name, default, doc } in variables {
        let default = if default.is_empty() { String::new() } else { format!(" [default: {default}]") };
        let doc = doc.trim_end_matches('.').replace('`', "");
        text.push_str(&format!("  {name}{default}\n          {doc}\n"));
    }
    text
}

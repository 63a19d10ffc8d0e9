"""`gatehook serve`, one process per scenario, and how each scenario is configured."""

import os
import subprocess

from .models import line_with

VERDICTS = ("allow", "deny", "ask", "modify", "unavailable")


def scenarios(webhook):
    """Name of each scenario: environment, and the text of a configuration file or None."""
    found = {"none": ({}, None)}
    for verdict in VERDICTS:
        found[f"pre-{verdict}"] = {"OLLAMA_HOOK_PRE_INFERENCE_URL": f"{webhook}/{verdict}"}, None
        found[f"post-{verdict}"] = {"OLLAMA_HOOK_POST_INFERENCE_URL": f"{webhook}/{verdict}"}, None
    found["pre-unsupported"] = {"OLLAMA_HOOK_PRE_INFERENCE_URL": f"{webhook}/unsupported"}, None
    found["fail-open"] = {
        "OLLAMA_HOOK_PRE_INFERENCE_URL": f"{webhook}/unavailable",
        "OLLAMA_HOOK_POST_INFERENCE_URL": f"{webhook}/unavailable",
        "OLLAMA_HOOK_ON_ERROR": "allow",
    }, None
    found["both"] = {
        "OLLAMA_HOOK_PRE_INFERENCE_URL": f"{webhook}/modify",
        "OLLAMA_HOOK_POST_INFERENCE_URL": f"{webhook}/modify",
        "OLLAMA_HOOK_TIMEOUT": "10s",
        "OLLAMA_HOOK_HEADERS": "X-Team: red, X-Site:north",
    }, None
    found["yaml-webhooks"] = {}, f"""
hooks:
  pre_inference:
    - {{ type: webhook, url: "{webhook}/modify", contract: ollama, timeout: 10s }}
  post_inference:
    - {{ type: webhook, url: "{webhook}/ask", contract: ollama, timeout: 10s }}
"""
    found["yaml-builtins"] = {}, """
hooks:
  pre_inference:
    - { type: builtin, command: redact_secrets }
  post_inference:
    - { type: builtin, command: block_patterns, args: ["123-45-6789"] }
"""
    # What is held back is as long as the answer's number: a window never cuts it.
    window = "{ mode: window, size: 8, max_wait: 20ms, overlap: 4, holdback: 11 }"
    for verdict in ("deny", "ask", "modify"):
        found[f"number-{verdict}"] = {}, f"""
hooks:
  post_inference:
    - {{ type: webhook, url: "{webhook}/number-{verdict}", contract: ollama, timeout: 10s, stream: {window} }}
"""
    found["number-blocked"] = {}, """
hooks:
  post_inference:
    - { type: builtin, command: block_patterns, args: ['\\d{3}-\\d{2}-\\d{4}'] }
"""
    found["number-redacted"] = {}, """
hooks:
  post_inference:
    - { type: builtin, command: redact_pii }
"""
    found["number-filtered"] = {}, """
streams: { on_block: content_filter }
hooks:
  post_inference:
    - { type: builtin, command: block_patterns, args: ['\\d{3}-\\d{2}-\\d{4}'] }
"""
    piecewise = "{ mode: window, size: 1, max_wait: 1ms, overlap: 0 }"
    for verdict in ("later-deny", "later-ask", "allow", "spell"):
        found[f"piecewise-{verdict}"] = {}, f"""
hooks:
  post_inference:
    - {{ type: webhook, url: "{webhook}/{verdict}", timeout: 10s, stream: {piecewise} }}
"""
    for verdict in ("deny", "ask"):
        found[f"filtered-later-{verdict}"] = {}, f"""
streams: {{ on_block: content_filter }}
hooks:
  post_inference:
    - {{ type: webhook, url: "{webhook}/later-{verdict}", timeout: 10s, stream: {piecewise} }}
"""
    found["filtered-tool-ask"] = {}, f"""
streams: {{ on_block: content_filter }}
hooks:
  pre_tool_use:
    - {{ type: webhook, url: "{webhook}/tool-ask", timeout: 10s }}
"""
    found["post-spell"] = {}, f"""
hooks:
  post_inference:
    - {{ type: webhook, url: "{webhook}/spell", timeout: 10s }}
"""
    for verdict in ("deny", "ask", "modify"):
        found[f"tool-{verdict}"] = {}, f"""
hooks:
  pre_tool_use:
    - {{ type: webhook, url: "{webhook}/tool-{verdict}", timeout: 10s }}
"""
    return found


def start(binary, upstream, webhook, home, processes):
    """Starts a gateway for each scenario; their addresses by name. The processes go into `processes`."""
    home.mkdir(parents=True, exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OLLAMA_", "GATEHOOK_"))}
    inherited |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}  # Nobody's own configuration takes part.
    started = {}
    for name, (environment, configuration) in scenarios(webhook).items():
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--upstream", upstream]
        if configuration:
            file = home / f"{name}.yaml"
            file.write_text(configuration)
            command += ["--config", str(file)]
        process = subprocess.Popen(
            command,
            env=inherited | environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        processes.append(process)
        started[name] = process
    pattern = r"listening on (http://[\d.:]+)"
    return {name: line_with(process, pattern, home / f"{name}.log") for name, process in started.items()}

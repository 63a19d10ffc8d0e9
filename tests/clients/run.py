#!/usr/bin/env python3
"""Runs the tests of SDKs, in Python and JavaScript, and of the agent, in Python, against one set of servers, and counts
them together.

usage: run.py [WORD]    only tests whose name has WORD in it

GATEHOOK_BIN names the gateway's binary, CLIENTS_HOME a directory for models and logs, NODE_PATH the npm packages.
`cargo xtask test clients` sets all three.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import xml.etree.ElementTree

from harness import gateway, models, recorded, server, upstream, webhook

HERE = pathlib.Path(__file__).parent


def main():
    home = pathlib.Path(os.environ["CLIENTS_HOME"])
    processes = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        stack = start(home, processes)
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment["CLIENTS_STACK"] = json.dumps(stack)
        passed, failed = map(sum, zip(run_python(environment, home), run_javascript(environment, home)))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
    if failed:
        print(f"what the servers said: {home}/gateways/*.log, {home}/models/*.log")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def start(home, processes):
    """Starts every server; what the tests need to know of them."""
    models.build(home / "models")
    at_upstream, at_webhook = server.Record(), server.Record()
    hook = webhook.start(at_webhook)
    pauses = upstream.Pauses()
    real = upstream.start(at_upstream, models.start(home / "models", processes), pauses)
    gateways = gateway.start(os.environ["GATEHOOK_BIN"], real, hook, home / "gateways", processes)
    return {
        "gateways": gateways,
        "upstream": real,
        "recorded": recorded.streams(),
        "records": start_records({"upstream": at_upstream, "webhook": at_webhook}, pauses),
        "answer": models.ANSWER,
        "window": models.WINDOW,
        "before_pause": upstream.BEFORE_PAUSE,
        "user_message": webhook.USER_MESSAGE,
        "agent_message": webhook.AGENT_MESSAGE,
        "prompt_secret": webhook.PROMPT_SECRET,
        "answer_secret": webhook.ANSWER_SECRET,
        "mask": webhook.MASK,
        "city": webhook.CITY,
    }


def start_records(records, pauses):
    """`GET /upstream/MODEL` and `GET /webhook/MODEL` list the requests that named this model, and `GET /go-on/MODEL`
    lets its stream go on."""

    class Records(server.Handler):
        def do_GET(self):
            where, model = self.path.strip("/").split("/")
            if where == "go-on":
                pauses.go_on(model)
                return self.answer(200, {})
            self.answer(200, records[where].of(model))

    return server.start(Records)


def run_python(environment, home):
    """How many Python tests passed and failed."""
    report = home / "python.xml"
    chosen = ["-k", sys.argv[1]] if len(sys.argv) > 1 else []
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *chosen]
    return counted([sys.executable, "-B", "-m", "pytest", *options, HERE / "python"], environment, report)


def run_javascript(environment, home):
    """How many JavaScript tests passed and failed."""
    report = home / "javascript.xml"
    chosen = [f"--test-name-pattern={sys.argv[1]}"] if len(sys.argv) > 1 else []
    reporters = [
        *("--test-reporter=spec", "--test-reporter-destination=stdout"),
        *("--test-reporter=junit", f"--test-reporter-destination={report}"),
    ]
    files = sorted((HERE / "javascript").glob("*.test.js"))
    return counted(["node", "--test", *reporters, *chosen, *files], environment, report)


def counted(command, environment, report):
    """Runs a test command; how many test cases of its JUnit report passed and failed."""
    report.unlink(missing_ok=True)
    print("$", *command, flush=True)
    ended_well = subprocess.run(command, env=environment, cwd=HERE).returncode == 0
    cases = [] if not report.exists() else list(xml.etree.ElementTree.parse(report).iter("testcase"))
    failed = sum(any(case.find(kind) is not None for kind in ("failure", "error")) for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    if not ended_well and failed == 0:
        failed = 1  # It broke before it could report.
    return len(cases) - failed - skipped, failed


if __name__ == "__main__":
    sys.exit(main())

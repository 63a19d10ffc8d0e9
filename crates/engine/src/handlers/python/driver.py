"""Calls one function for each line of JSON, and answers each with one line.

An answer is the function's as JSON: an object, a text or null. `!` begins a failure, with its message and traceback.
Runs on Python 3.8 and later, with nothing but the standard library.
"""

import sys

# The working directory comes first with `-c`: a file there must not stand in for what is imported below.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import importlib
import importlib.util
import json
import os
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

SPEC = json.loads(sys.argv[1])
REPLY_LIMIT = 1 << 20
MESSAGE_LIMIT = 500
TRACEBACK_LIMIT = 32 << 10
STDLIB = os.path.dirname(os.path.realpath(os.__file__))
STDLIB_NAMES = getattr(sys, "stdlib_module_names", sys.builtin_module_names)

# Files of the project that were imported, as they were then.
loaded = {}
function = None
loop = None


class Source(SourceFileLoader):
    """Imports what stands in the file: no compiled copy beside it is read or written."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        loaded[path] = stamp(path)
        return self.source_to_code(self.get_data(path), path)


def stamp(path):
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def is_project(path):
    path = os.path.realpath(path)
    if path == STDLIB or path.startswith(STDLIB + os.sep):
        return False
    if not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep)):
        return False
    return any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in project_roots)


def finder(path):
    if not (os.path.isdir(path or ".") and is_project(path or ".")):
        raise ImportError("no folder of the project")
    return FileFinder(path or ".", (Source, SOURCE_SUFFIXES))


project_roots = [os.path.realpath(root) for root in SPEC["roots"]]
sys.path_hooks.insert(0, finder)
sys.path_importer_cache.clear()
# Behind the standard library, which no project can replace, and before what is installed.
installed = (at for at, path in enumerate(sys.path) if "site-packages" in path or "dist-packages" in path)
at = next(installed, len(sys.path))
sys.path[at:at] = [root for root in SPEC["roots"] if root not in sys.path]
sys.argv = [SPEC["file"] or SPEC["module"]]


def load():
    """Imports the module anew, and all modules of the project that came with it."""
    global function
    function = None
    for name, module in list(sys.modules.items()):
        if isinstance(getattr(getattr(module, "__spec__", None), "loader", None), Source):
            sys.modules.pop(name, None)
    loaded.clear()
    importlib.invalidate_caches()
    found = load_file() if SPEC["is_file"] else load_module()
    for name in SPEC["function"].split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{SPEC['function']} is no function")
    function = found


def load_file():
    """One that is no part of a package: whatever its name, it hides no other module."""
    name = SPEC["module"]
    if name in STDLIB_NAMES or name in sys.modules:
        name = "gatehook_hook_" + name
    loader = Source(name, SPEC["file"])
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, SPEC["file"], loader=loader))
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def load_module():
    top = SPEC["module"].split(".")[0]
    if SPEC["file"] and top in STDLIB_NAMES:
        raise ImportError(f"the package {top} has the name of one of Python's own: rename it")
    return importlib.import_module(SPEC["module"])


def call(event):
    if function is None or any(stamp(path) != before for path, before in loaded.items()):
        load()
    value = function(event)
    if hasattr(value, "__await__"):
        value = wait_for(value)
    return value


def wait_for(awaitable):
    global loop
    import asyncio

    if loop is None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)

    async def waited():
        return await awaitable

    return loop.run_until_complete(waited())


def answer(line):
    try:
        value = call(json.loads(line))
        if not (value is None or isinstance(value, (dict, str))):
            raise TypeError(f"a hook returns a dict, a str or None, not {type(value).__name__}")
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        if len(text) > REPLY_LIMIT:
            return b"+"
        return text
    except BaseException as error:
        return failure(error)


def failure(error):
    """Whatever ends the function ends this event alone, `sys.exit` and Ctrl-C included."""
    import traceback

    name = type(error).__name__
    try:
        message = f"{name}: {error}" if str(error) else name
    except BaseException:
        message = name
    try:
        step = error.__traceback__
        while step and step.tb_frame.f_code.co_filename == "<string>":
            step = step.tb_next
        text = "".join(traceback.format_exception(type(error), error, step))
    except BaseException:
        text = message
    text = text[-TRACEBACK_LIMIT:]
    body = json.dumps({"message": printable(message[:MESSAGE_LIMIT]), "traceback": printable(text)})
    return b"!" + body.encode()


def printable(text):
    return text.encode("utf-8", "backslashreplace").decode()


def run():
    # What the hook prints goes to stderr, and it reads nothing: the pipes are for this program alone.
    events = os.fdopen(os.dup(0), "rb")
    answers = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace", line_buffering=True)
    own = os.getpid()
    for line in events:
        rest = memoryview(answer(line) + b"\n")
        if os.getpid() != own:
            os._exit(0)  # A fork of the hook's that came back from it.
        while rest:
            rest = rest[os.write(answers, rest) :]


try:
    run()
finally:
    import atexit

    # Threads that the hook has left do not keep the process.
    atexit._run_exitfuncs()
    os._exit(0)

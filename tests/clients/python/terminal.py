"""A terminal in which a program runs: what it writes is shown on a screen, and keys are typed into it."""

import os
import pty
import select
import signal
import termios
import time

import pyte


class Terminal:
    def __init__(self, command, folder, environment, patience, columns=80, rows=24):
        """Runs `command` in a terminal of its own. What is waited for has `patience` seconds."""
        self.patience = patience
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._status = None
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            try:
                termios.tcsetwinsize(0, (rows, columns))
                os.chdir(folder)
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Where a test fails the program may still run."""
        if self._status is None:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        os.close(self._terminal)

    def seen(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def types(self, keys):
        os.write(self._terminal, keys.encode())

    def sees(self, text):
        """Waits until a text is seen; the whole screen."""
        deadline = time.monotonic() + self.patience
        while text not in self.seen():
            assert self._read(deadline), f"{text!r} is not seen:\n{self.seen()}"
        return self.seen()

    def ends(self):
        """Waits for the program's end; its exit status."""
        deadline = time.monotonic() + self.patience
        while self._read(deadline):
            pass
        assert time.monotonic() < deadline, f"it does not end:\n{self.seen()}"
        _, status = os.waitpid(self._process, 0)
        self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def _read(self, deadline):
        """Shows what the program writes next; whether there was anything before its end or the deadline."""
        ready, _, _ = select.select([self._terminal], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            written = os.read(self._terminal, 65536)
        except OSError:  # The terminal's last end is closed when the program has ended.
            return False
        self._stream.feed(written)
        return bool(written)

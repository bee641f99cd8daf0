"""A terminal with a program in it."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import threading

import command

# The other screen, and back.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
# A line that is rewritten.
AGAIN = "\r\x1b[K"


def started(rows, columns, *arguments, **environment):
    """`hodo` on a terminal of some size, which is ended with the test."""
    return beside(rows, columns, [command.HODO, *map(str, arguments)], **environment)


@contextlib.contextmanager
def beside(rows, columns, program, **environment):
    """Any program on one."""
    master, slave = pty.openpty()
    resize(master, rows, columns)
    settings = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "", **environment}
    lead = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # noqa: E731
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    with command.beside(program, env=settings, start_new_session=True, preexec_fn=lead, **streams) as process:
        os.close(slave)
        yield Terminal(process, master)


def resize(master, rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    """What a program shows and is told on its terminal."""

    def __init__(self, process, master):
        self.process, self.master = process, master
        self.said = b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError):
            while piece := os.read(self.master, 65536):
                self.said += piece

    def resize(self, rows, columns):
        resize(self.master, rows, columns)

    def key(self, byte):
        os.write(self.master, byte)

    def text(self):
        return self.said.decode(errors="replace").replace("\r\n", "\n")

    def pictures(self):
        """The whole pictures that filled the screen, each as lines without colours."""
        whole = [one.removesuffix("\x1b[J") for one in self.text().split("\x1b[H")[1:] if one.endswith("\x1b[J")]
        return [[line.removesuffix("\x1b[K") for line in plain(one).split("\n")[:-1]] for one in whole]

    def picture(self):
        """The latest of them."""
        return (self.pictures() or [[]])[-1]

    def lines(self):
        """Each line that was printed, as all that stood in it, one after the other."""
        return [plain(line).split(AGAIN) for line in self.text().split("\n")]

    def after(self):
        """The lines after the last picture, on the screen that had been there before."""
        _, lines = self.text().split(LEAVE)
        return lines.splitlines()

    def end(self):
        """The exit status, once everything was read."""
        status = self.process.wait(command.BOUND_S)
        self.reader.join(command.BOUND_S)
        os.close(self.master)
        return status


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)

"""Toy repositories, with the runner's own files and stages or sources that a test chooses."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Nothing that the caller of these tests has set changes what they see.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("HODO", "GIT_", "CARGO_TARGET_"))}
ENVIRONMENT |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
ENVIRONMENT |= {f"GIT_{who}_{what}": f"toy@{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Repository:
    """A git repository in a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, path, text, mode=0o644):
        """Writes a file, and the folders above it."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def take(self, *paths):
        """Copies files of this project."""
        for path in paths:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)

    def git(self, *arguments):
        """Runs git and returns what it printed."""
        return subprocess.run(["git", *arguments], cwd=self.folder, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message="as it is"):
        """Commits all changes; the first time, in a new repository."""
        if not (self.folder / ".git").exists():
            self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def run(self, *command, **variables):
        """Runs a command of it, with these variables; returns its end, with what it said."""
        return subprocess.run(
            [str(word) for word in command], cwd=self.folder, env=ENVIRONMENT | variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

"""File systems of a test's own, in a mount namespace that a waiting shell holds; others see them below /proc."""

import pathlib
import subprocess


class Disk:
    """What a script has mounted on a folder."""

    def __init__(self, folder, script, *arguments):
        folder.mkdir()
        script = f'set -e; {script}; echo ready; read -r end'
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, "sh", str(folder), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.holder.stdout.readline() == "ready\n", "this needs root"
        self.path = folder
        # The same folder from outside.
        self.seen = pathlib.Path(f"/proc/{self.holder.pid}/root{folder}")
        self.inside = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt"]

    def close(self):
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait(10)


class SmallDisk(Disk):
    """A tmpfs of so many megabytes."""

    def __init__(self, folder, megabytes):
        super().__init__(folder, 'mount -t tmpfs -o size="$2"m small "$1"', megabytes)


class Ext4(Disk):
    """A file system in an image. The system writes to it by itself only after minutes."""

    def __init__(self, folder, image):
        self.image = image
        super().__init__(folder, 'mount -o loop,commit=300 "$2" "$1"', image)

    @staticmethod
    def made(folder, image, megabytes=32):
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        return Ext4(folder, image)

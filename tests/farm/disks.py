"""File systems of a test's own, in a mount namespace that a waiting shell holds; others see them below /proc."""

import contextlib
import pathlib
import subprocess


class Disk:
    """What a script has mounted on a folder."""

    def __init__(self, folder, script, *arguments):
        folder.mkdir()
        script = f'set -e; {script.strip()}; echo ready; read -r end'
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


class LateDisk(Disk):
    """An ext4 on a device that has promised more than there is, as a thin volume does: what is written is taken, and fails when
    it goes to the disk. `room` ends that, or begins it."""

    def __init__(self, folder):
        # What the file system writes for itself is there; the second half, where new files go, is promised only.
        script = """
            mount -t tmpfs -o size=48m under "$1"
            head -c 32M /dev/zero >"$1/image"
            mkfs.ext4 -q -F -b 4096 -m 0 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -J size=4 "$1/image"
            mkdir "$1/disk"
            mount -o loop,commit=300 "$1/image" "$1/disk"
            mkdir "$1/disk/store"
            free=$(($(stat -f -c %f "$1/disk") * 4096))
            head -c $((free - 16777216)) /dev/zero >"$1/disk/first-half"
            sync -f "$1/disk"
            fallocate --punch-hole --offset 16M --length 16M "$1/image"
        """
        super().__init__(folder, script)
        self.ballast = self.seen / "ballast"
        self.image = self.seen / "image"
        self.path = folder / "disk"

    def room(self, is_there):
        if is_there:
            self.ballast.unlink()
        else:
            fill(self.ballast)


def fill(ballast):
    """Takes all the room that is left."""
    with contextlib.suppress(OSError), open(ballast, "ab", buffering=0) as file:
        while file.write(bytes(4096)):
            pass

"""Makes the guest: Debian's kernel, and an initial file system of stock packages, the agent and the programs of the tests."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[1] / "target")) / "guest"
# Both kinds of card, and the kernel's own RDMA device; the modules that they need come with them.
MODULES = ("crc32_generic", "virtio_pci", "virtio_net", "e1000e", "ib_uverbs", "rdma_rxe", "sch_netem")
TOOLS = (
    "ibv_devinfo", "ibv_rc_pingpong", "rdma", "ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw", "ib_read_lat", "ib_read_bw",
    "ib_atomic_lat", "ib_atomic_bw", "ethtool",
)  # fmt: skip
APPLETS = "sh mount insmod ip ping sed grep ls cat echo sleep dmesg kill mkdir chmod head tail timeout true tc ulimit".split()
DRIVER = "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so"


def run(*command, **options):
    """Runs a command; its errors are in the exception."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout


def kernel():
    """Downloads Debian's kernel once, and returns the folder where it is unpacked, and its version."""
    package = re.search(r"^Depends:.*?(linux-image-\S+)", run("apt-cache", "show", "linux-image-amd64"), re.MULTILINE).group(1)
    folder, version = TARGET / package, package.removeprefix("linux-image-")
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run("apt-get", "download", package, cwd=folder)
        (archive,) = folder.glob("*.deb")
        run("dpkg", "-x", archive, folder)
        archive.unlink()
        run("depmod", "-b", folder, version)
        (folder / "ready").touch()
    return folder, version


def initial_ram_disk(programs):
    """Returns the file system, made anew if anything of it has changed; `programs` are more files for /bin."""
    folder, version = kernel()
    agent = TARGET / "agent"
    run("cc", "-O1", "-static", "-o", agent, HERE / "agent.c")
    found = [shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") or tool for tool in TOOLS]
    files = [*map(pathlib.Path, found), agent, *map(pathlib.Path, programs)]
    stamp = hashlib.sha256(version.encode())
    for file in [*files, HERE / "init.sh", HERE / "image.py"]:
        stamp.update(f"{file}:{file.stat().st_mtime_ns}:{file.stat().st_size}\n".encode())
    image = TARGET / f"guest-{stamp.hexdigest()[:16]}.cpio.zst"
    if not image.exists():
        for old in TARGET.glob("guest-*.cpio.zst"):
            old.unlink()
        root = TARGET / "root"
        shutil.rmtree(root, ignore_errors=True)
        fill(root, files, folder, version)
        pack = "find . | cpio --create --format newc --quiet | zstd -q -3 -T0 -f -o"
        run("sh", "-c", f"{pack} {image}.new", cwd=root)
        os.rename(f"{image}.new", image)
        shutil.rmtree(root)
    return folder / "boot" / f"vmlinuz-{version}", image


def fill(root, files, folder, version):
    """Puts everything in its place."""
    for name in ("bin", "proc", "sys", "dev", "tmp", "lib/modules", "etc/libibverbs.d"):
        (root / name).mkdir(parents=True)
    (root / "sbin").symlink_to("bin")
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    for file in files:
        place = root / "bin" / file.name
        shutil.copy2(file, place)
        copy_libraries(root, file)
    for file in (DRIVER, "/etc/libibverbs.d/rxe.driver"):
        copy(root, file)
    copy_libraries(root, DRIVER)
    names = []
    for module in MODULES:
        lines = run("modprobe", "-d", folder, "-S", version, "--show-depends", module).splitlines()
        for line in (line for line in lines if line.startswith("insmod")):
            path = pathlib.Path(line.split()[1])
            if path.name not in names:
                names.append(path.name)
                shutil.copy2(path, root / "lib/modules")
    (root / "modules").write_text("\n".join(names) + "\n")
    shutil.copy2(HERE / "init.sh", root / "init")
    (root / "init").chmod(0o755)


def copy(root, file):
    """Copies a file to the same path."""
    place = root / str(file).lstrip("/")
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)


def copy_libraries(root, file):
    """Copies the libraries of a program; one that is linked statically has none."""
    listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+) \(0x", listed):
        copy(root, library)
    # Opened at run time.
    copy(root, "/usr/lib/x86_64-linux-gnu/libibverbs.so.1")
    for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", DRIVER], capture_output=True, text=True, check=False).stdout):
        copy(root, library)

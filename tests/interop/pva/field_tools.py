"""The command lines of the field's tools at one IOC, how they are run, and the recording of what the tools themselves did.

    python tests/interop/pva/field_tools.py FOLDER > tests/interop/pva/field_tools.jsonl

records that anew; FOLDER has the programs pvget, pvput, pvmonitor, pvinfo, pvlist, pvcall of pvAccessCPP, the same with pvx of pvxs,
and eget, compiled against the libraries of PyPI's `epicscorelibs` and `pvxslibs`. The first line says which versions they are.
Everything is done six times, because pvAccessCPP's tools sometimes lose a name, and what is not always the same otherwise is left out.
Of standard error the first line is kept.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from p4p.client.thread import Context

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1]))
import peers  # noqa: E402

DATABASE = HERE / "tools.db"
RECORDS = re.findall(r'^record\(\w+, "([^"]+)"\)', DATABASE.read_text(), re.MULTILINE)
GROUPS = sorted(set(re.findall(r'"(G:\w+)"', DATABASE.read_text())))
# One of each kind of value.
KINDS = ["I:ai", "I:ai:undefined", "I:bi:alarm", "I:mbbo", "I:int64in", "I:stringin:quotes", "I:lso", "I:wf:STRING", "I:wf:UCHAR", "I:wf:DOUBLE",
    "I:wf:empty"]
KINDS += GROUPS
PLAIN = ["pvget", "pvinfo", "pvxget", "pvxinfo"]
# How often everything is recorded.
PASSES = 6
# What pvAccessCPP's tools print where the channel is gone before its name or its server is printed.
GARBLED = r"<NULL>|^Server: $"
# How long a monitor may take to print an update.
PATIENCE_S = 20

READS = [f"{tool} {name}" for tool in PLAIN for name in RECORDS + GROUPS]
READS += [f"pvget {options} {name}" for options in ("-M raw", "-M json", "-vv", "-r value") for name in KINDS]
READS += [f"pvget -M {form} -r {request} {name}" for form in ("nt", "raw", "json") for request in ("alarm", "timeStamp.userTag")
    for name in ("I:ai:high", "I:mbbo", "I:wf:one")]
READS += [f"pvget -M json -v {name}" for name in ("I:ai", "I:bi", "I:wf:FLOAT")]
READS += [f"pvget {option} I:ai" for option in ("-q", "-t", "-n", "-i", "-c", "-F ,", "-p pva", "-R", "-w 2", "-w x", "-M yaml")]
READS += ["pvget -n I:mbbo", "pvget -t -q -n I:bi", "pvget -r 'field(value.index)' I:mbbo", "pvget -r 'field(value,alarm)' I:ai:high",
    "pvget -r nosuch I:ai"]
READS += ["pvget -r 'field(x.value)' G:pair", "pvget -M raw -r 'x.value,y.alarm' G:pair", "pvget -r 'record[process=true]field(value)' I:calc",
    "pvget -r 'field(' I:ai"]
READS += [f"eget {name}" for name in KINDS]
READS += [f"pvxget -F tree {name}" for name in KINDS]
READS += [f"pvxget -# {count} {name}" for count in (0, 2, 20) for name in ("I:wf:long", "I:wf:STRING", "G:table", "I:ai")]
READS += [f"pvxget -F {form} -# 3 -r {request} {name}" for form in ("tree", "delta") for request in ("value", "'field(alarm,display)'")
    for name in ("I:ai", "I:mbbo", "I:wf:long", "I:stringin:quotes")]
READS += ["pvxget -r alarm,display I:ai"]
READS += ["pvxget -r 'field(x.value)' G:pair", "pvxget -r nosuch I:ai", "pvxget -F xml I:bi", "pvxget -r 'field(' I:ai"]
READS += ["pvget I:ai I:bi:alarm I:wf:STRING", "pvxget I:longin I:bi", "pvinfo I:ai I:bi", "pvxinfo I:ai I:bi"]
READS += ["pvlist @", "pvlist -i @", "pvlist -q @", "pvlist -w 1", "pvlist -d @", "pvxlist @", "pvxlist -v @", "pvxlist -i @", "pvxlist -w 1",
    "pvxlist -i"]
READS += [f"{tool} -w 0.3 NOSUCH" for tool in ("pvget", "pvinfo", "pvxget", "pvxinfo", "eget", "pvxcall", "pvcall")]
READS += ["pvget -w 0.5 NOSUCH I:ai", "pvxget -w 0.5 NOSUCH I:ai", "pvput -w 0.3 NOSUCH 1", "pvxput -w 0.3 NOSUCH 1", "pvlist -w 0.3 127.0.0.1:1"]
READS += ["pvget", "pvput", "pvmonitor", "pvinfo", "pvcall", "pvxget", "pvxput", "pvxinfo", "pvxcall", "eget", "pvput I:ao", "pvxput I:ao",
    "pvcall I:ai x", "pvxcall I:ai x"]
READS += [f"{tool} -Z I:ai" for tool in ("pvget", "pvput", "pvmonitor", "pvinfo", "pvcall", "pvlist", "pvxget", "pvxput", "pvxmonitor",
    "pvxinfo", "pvxcall", "pvxlist", "eget")]
READS += [f"{tool} -w" for tool in ("pvget", "pvput", "pvinfo", "pvlist", "pvcall", "pvxget", "pvxput", "pvxinfo", "pvxlist", "pvxcall")]
READS += ["pvget -f x I:ai", "pvput -f x I:ao 1", "eget -f x", "pvcall I:ai a=1", "pvxcall I:ai a=1", "eget -s I:ai -a a=1",
    "pvcall -s I:ai -a a=1 -a b=2", "pvget -p none I:ai", "pvxget -# x I:ai"]

NUMBERS = ["3", "-4.5", "1e1", "0x10", "007", "abc", "''", "' 5'", "5x", "nan"]
PUTS = [f"pvput I:ao:wide {word}" for word in NUMBERS] + [f"pvxput I:ao:wide {word}" for word in NUMBERS]
PUTS += [f"pvput I:longout {word}" for word in ("12", "0x10", "010", "1.5", "abc", "2147483648", "-2147483648", "''")]
PUTS += [f"pvxput I:longout {word}" for word in ("13", "0x11", "010", "1.5", "abc", "-2147483648")]
PUTS += [f"{tool} I:int64out {word}" for tool in ("pvput", "pvxput") for word in ("9007199254740993", "-1", "0x7fffffffffffffff")]
PUTS += [f"pvput I:ao {word}" for word in ("4.25", "99", "-99")] + ["pvput -q I:ao 1", "pvput -q -n -s -t -F , I:ao 1.5", "pvput -v I:ao 2",
    "pvput -M json I:ao 3", "pvput -M raw I:ao 4"]
PUTS += ["pvput -r 'record[process=false]' I:ao 4.5", "pvput -r 'record[process=true,block=true]' I:ao 3.5",
    "pvxput -r 'record[block=true]' I:ao 1.25", "pvxput -v I:ao 2.25"]
PUTS += [f"pvput I:bo {word}" for word in ("1", "Closed", "'Wide open'", "2", "nosuch")] + [f"pvxput I:bo {word}" for word in ("value.index=1",
    "nosuch", "'Wide open'", "0")]
PUTS += [f"pvput I:mbbo {word}" for word in ("Zero", "'Two parts'", "1", "4", "16", "value.index=1", "nosuch")]
PUTS += [f"pvxput I:mbbo {word}" for word in ("value.index=2", "nosuch", "One", "3")]
PUTS += [f"{tool} I:stringout {word}" for tool in ("pvput", "pvxput") for word in ("plain", "'two words'", "''", "007", "'a \"b\" c'",
    "value=assigned")]
PUTS += ["pvput I:stringout 'k=v'", "pvput I:stringout '[1,2]'", "pvput I:stringout '\"quoted\"'", "pvxput I:stringout '\"json\"'",
    "pvxput I:stringout 'k=v'"]
PUTS += [f"{tool} I:lso 'a text of more than forty characters, for a long string output'" for tool in ("pvput", "pvxput")]
PUTS += [f"pvput I:wf:DOUBLE {words}" for words in ("3 1.5 2.5 3.5", "2 7", "1", "X 8 9", "'[1, 2.5, 3]'", "'[]'", "3 a b c",
    "'{\"value\": [4, 5]}'", "value='[6,7]'")]
PUTS += [f"pvxput I:wf:DOUBLE {words}" for words in ("'[1, 2.5, 3]'", "'[]'", "5", "value='[6,7]'", "'{\"value\":[8]}'", "'[1,\"a\"]'")]
PUTS += [f"pvput I:wf:{kind} {words}" for kind in ("LONG", "UCHAR", "SHORT") for words in ("2 5 6", "'[7, 8]'")]
PUTS += ["pvput I:wf:STRING 2 one 'two words'", "pvput I:wf:STRING '[\"a\", \"b c\"]'", "pvxput I:wf:STRING '[\"a\", \"b c\"]'",
    "pvxput I:wf:LONG '[1,2]'", "pvxput I:wf:UINT64 '[1,18446744073709551615]'"]
PUTS += ["pvput I:wf:STRING 2 007 1.50", "pvput I:wf:USHORT 2 1 65535", "pvput I:wf:FLOAT 2 0.1 1e10", "pvput I:wf:one 1 3.25",
    "pvput I:aao 2 4 5", "pvput I:aao '[1,2,3,4,5,6,7]'"]
PUTS += ["pvput G:plain x=1.5 y=2.5", "pvput G:plain '{\"x\": 3, \"y\": 4}'", "pvxput G:plain x=5 y=6", "pvxput G:plain '{\"x\":7,\"y\":8}'",
    "pvput G:pair x.value=11 y.value=12"]
PUTS += ["pvxput G:pair x.value=13 y.value=14", "pvxput G:pair x.nosuch=1", "pvput G:pair nosuch=1", "pvput G:pair 5",
    "pvput G:table 'value.a=[1,2]'", "pvxput G:table 'value.a=[3,4]'"]
PUTS += ["pvput I:ai 4", "pvput I:ai value=5", "pvxput I:ai value=6", "pvput I:calc.CALC A+7", "pvput I:ai.EGU mm", "pvxput I:ai.HIGH 3",
    "pvput I:mbboDirect 9", "pvput I:ao -- -2.5", "pvput I:ao value=1 alarm.severity=2"]

# A monitor prints this many blocks, then a value is written, and the blocks of that come.
MONITORS = [f"{tool} {name}" for tool in ("pvmonitor", "pvget -m", "pvxmonitor") for name in ("I:ao", "I:mbbo", "I:stringout", "I:aao", "G:pair")]
MONITORS += [f"{words} I:ao" for words in ("pvmonitor -v", "pvmonitor -M json", "pvmonitor -vv -M raw", "pvmonitor -r value", "pvmonitor -t -q",
    "eget -m", "pvxmonitor -F tree", "pvxmonitor -r value", "pvxmonitor -F delta -# 2")]
WRITES = {"I:ao": 2.75, "I:mbbo": 2, "I:stringout": "next", "I:aao": [3, 1], "G:pair": {"x": {"value": 0.5}}}


def normal(text, at):
    """Returns what was printed without what differs from run to run: times, ports, identities."""
    text = text.replace(at, "@")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", "TIME-OF-23-CHARACTERS!!", text)
    text = re.sub(r"(secondsPastEpoch|nanoseconds)((?: [a-z0-9_]+ =)?\"?:? ?)(?!0\b|631152000\b)\d+", r"\1\2N", text)
    text = re.sub(r"((?:int64_t|int32_t) (?:seconds|nano)\w* = )(?!0$|631152000$)\d+", r"\1N", text, flags=re.MULTILINE)
    text = re.sub(r"\b0x[0-9A-F]{24}\b|\b[0-9a-f]{24}\b", "GUID", text)
    return re.sub(r"127\.0\.0\.1:\d{4,5}", "127.0.0.1:PORT", text)


class Bench:
    """One IOC, the tools in a folder, and a client that reads and writes beside them."""

    def __init__(self, folder, ioc, search):
        self.folder, self.at = Path(folder), f"127.0.0.1:{ioc.port}"
        self.environment = {**os.environ, **search, "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_NAME_SERVERS": "", "TZ": "UTC", "LC_ALL": "C"}
        self.context = Context("pva", conf={"EPICS_PVA_NAME_SERVERS": self.at, "EPICS_PVA_ADDR_LIST": "", "EPICS_PVA_AUTO_ADDR_LIST": "NO"},
            useenv=False, nt=False)

    def line(self, command):
        name, *words = shlex.split(command)
        return [str(self.folder / name), *(word.replace("@", self.at) if word == "@" else word for word in words)]

    def run(self, command):
        """The exit status, standard output and standard error of a command line."""
        done = subprocess.run(self.line(command), capture_output=True, timeout=60, env=self.environment, stdin=subprocess.DEVNULL)
        out, err = (normal(text.decode("latin-1"), self.at).replace(f"{self.folder}/", "") for text in (done.stdout, done.stderr))
        return {"command": command, "status": done.returncode, "out": out, "err": err.split("\n")[0]}

    def read(self, name):
        """What can be written of a PV, as it is now."""
        value = self.context.get(name, timeout=20)
        found = {}
        for field in ("x", "y", "x.value", "y.value", "value.a", "value.index", "value"):
            with contextlib.suppress(KeyError):
                held = value[field]
                if not hasattr(held, "todict"):
                    found[field] = held.tolist() if hasattr(held, "tolist") else held
        return found

    def put(self, command):
        """As `run`, with the value that is there afterwards."""
        found = self.run(command)
        name = next(word for word in shlex.split(command)[1:] if word[:2] in ("I:", "G:"))
        return {**found, "after": self.read(name)}

    def monitor(self, command, expected=None):
        """What a monitor prints of the value and of the next one, and its exit status after Ctrl-C.

        Where it is known how many lines are `expected` of the first value and of both, nothing else is waited for.
        """
        name = command.split()[-1]
        process = subprocess.Popen(self.line(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment, stdin=subprocess.DEVNULL)
        came, lines = threading.Condition(), []

        def take():
            for line in process.stdout:
                with came:
                    lines.append(line)
                    came.notify()

        reader = threading.Thread(target=take, daemon=True)
        reader.start()
        with came:
            first, total = expected or (1, None)
            is_complete = came.wait_for(lambda: len(lines) >= first, PATIENCE_S)
        before = first if expected else self.quiet(came, lines)
        self.context.put(name, WRITES[name], timeout=20)
        with came:
            is_complete = is_complete and came.wait_for(lambda: len(lines) >= (total or before + 1), PATIENCE_S)
        if not expected:
            self.quiet(came, lines)
        process.send_signal(signal.SIGINT)
        _, status = process.stderr.read(), process.wait(30)
        # Under load, pvmonitor sometimes does not wake for an update.
        status = status if is_complete else None
        reader.join(10)
        process.stdout.close(), process.stderr.close()
        return {"command": command, "status": status, "out": normal(b"".join(lines).decode("latin-1"), self.at), "err": ""}

    @staticmethod
    def quiet(came, lines):
        """How many lines there are once none has come for a while."""
        with came:
            count = len(lines)
            while came.wait_for(lambda: len(lines) > count, 0.3):  # noqa: B023
                count = len(lines)
            return count

    def close(self):
        self.context.close()


def lines_of(found):
    """How many lines a recorded monitor printed of the first value, and in all. A value begins with its name."""
    lines = found["out"].splitlines()
    name = found["command"].split()[-1]
    starts = [at for at, line in enumerate(lines) if line.split(" ")[0] == name]
    return starts[1], len(lines)


def all_of(bench, known=None):
    """Every command line, or those that are known, in this order: those that only read, side by side; then those that write, and monitors."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        yield from pool.map(bench.run, [command for command in READS if known is None or command in known])
    # All of these, so that the values before are those of the recording.
    for command in PUTS:
        yield bench.put(command)
    for name, value in [("I:ao", 0), ("I:mbbo", 0), ("I:stringout", "first"), ("I:aao", [1, 2]), ("G:pair", {"x": {"value": 1}, "y": {"value": 2}})]:
        bench.context.put(name, value, timeout=20)
    for command in (command for command in MONITORS if known is None or command in known):
        name = command.split()[-1]
        yield bench.monitor(command, lines_of(known[command]) if known else None)
        bench.context.put(name, {"I:ao": 0, "I:mbbo": 0, "I:stringout": "first", "I:aao": [1, 2], "G:pair": {"x": {"value": 1}}}[name], timeout=20)


def udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def bench(folder):
    """The IOC and the tools of a folder, which search at its own port and listen for beacons at another one."""
    port, other = udp_port(), udp_port()
    with peers.ioc(records=DATABASE, EPICS_PVAS_BROADCAST_PORT=str(port), TZ="UTC") as ioc:
        made = Bench(folder, ioc, {"EPICS_PVA_BROADCAST_PORT": str(other), "EPICS_PVA_ADDR_LIST": f"127.0.0.1:{port}"})
        try:
            yield made
        finally:
            made.close()


def main(folder):
    version = {tool: subprocess.run([Path(folder) / tool, "-V"], capture_output=True, text=True).stdout.split("\n")[0] for tool in ("pvget",
        "pvxget", "eget")}
    print(json.dumps({"versions": version}))
    passes = [once(folder) for _ in range(PASSES)]
    for founds in zip(*passes, strict=True):
        whole = [found for found in founds if found["status"] is not None and not re.search(GARBLED, found["out"], re.MULTILINE)]
        texts = collections.Counter(json.dumps({**found, "err": ""}) for found in whole)
        text, count = texts.most_common(1)[0] if whole else ("", 0)
        if count >= 2 and len(texts) == 1:
            print(json.dumps(next(found for found in whole if json.dumps({**found, "err": ""}) == text), ensure_ascii=True))
        else:
            print(f"left out: {founds[0]['command']}: {len(texts)} outcomes", file=sys.stderr)


def once(folder):
    with bench(folder) as made:
        return list(all_of(made))


if __name__ == "__main__":
    main(sys.argv[1])

"""The commands of README.md, and the output that it shows below them."""

import json
import re

import command
import contract

TEXT = (command.ROOT / "README.md").read_text(encoding="utf-8")
WITHOUT_CONSOLES = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
# The command whose output is that of `./test long demonstration`.
DEMONSTRATION = "hodo"
DEFINITIONS = json.loads(contract.SCHEMA.read_text(encoding="utf-8"))["$defs"]
# What differs between hosts and moments: units, bottlenecks and states.
VARYING = {"ns", "µs", "ms", "s", "B", "KiB", "MiB", *(each["const"] for name in ("Binding", "State") for each in DEFINITIONS[name]["oneOf"])}


def shown():
    """Each command of a console, as `(host, command, output)`: the host is `here`, `there` or empty."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        parts = re.split(r"^(here|there|)\$ (.*)\n", block, flags=re.MULTILINE)
        assert parts[0] == "", f"a console begins with a prompt: {block}"
        found += zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return found


def indented():
    """The commands that stand alone, without their comments."""
    return [line.split("#")[0].strip() for line in re.findall(r"^    (\S.*)$", WITHOUT_CONSOLES, re.MULTILINE)]


def in_text():
    """The commands within sentences and tables."""
    return re.findall(r"`(hodo .*?)`", one_line(WITHOUT_CONSOLES))


def words(text):
    """The words of an output that are the same on every host: without figures, addresses and what `VARYING` has."""
    found = {word.strip("`;:,.()") for word in text.split()}
    return {word for word in found if word and not re.search(r"[\d/…]", word)} - VARYING


def one_line(text):
    return " ".join(text.split())

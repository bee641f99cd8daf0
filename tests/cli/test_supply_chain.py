"""Where the code comes from that is not ours: known for every package, and nothing that a registry does not vouch for."""

import json
import re
import subprocess
import tomllib

import command
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def test_the_bill_of_materials_is_whole():
    text = subprocess.run([command.ROOT / "packaging/sbom"], capture_output=True, text=True, check=True).stdout
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    tree = ["cargo", "tree", "--locked", "--offline", "-p", "hodo-cli", "-e", "normal", "--prefix", "none"]
    lines = subprocess.run(tree, cwd=command.ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    linked = {tuple(re.match(r"(\S+) v(\S+)", line).groups()) for line in lines} - {("hodo-cli", "0.1.0")}
    assert {(part["name"], part["version"]) for part in document["components"]} == linked
    ours = [part["name"] for part in document["components"] if "hashes" not in part]
    assert all(name.startswith("hodo-") for name in ours), ours


def test_every_package_has_a_checksum_of_one_registry():
    packages = tomllib.loads((command.ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    others = [package for package in packages if "source" in package]
    assert len(others) > 100
    assert {package["source"] for package in others} == {"registry+https://github.com/rust-lang/crates.io-index"}
    assert [package["name"] for package in others if "checksum" not in package] == []

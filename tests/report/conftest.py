"""What the tests of the reports share: the sample result, the program that renders it, a browser."""

import json
import pathlib
import subprocess

import command
import pytest

from browser import Browser

SAMPLE = pathlib.Path(__file__).with_name("sample.json")


@pytest.fixture(scope="session")
def sample():
    """The sample result, as parsed JSON."""
    return json.loads(SAMPLE.read_text())


@pytest.fixture(scope="session")
def render(tmp_path_factory):
    """A function from a result to the folder that holds it as `result.html` and `result.tsv`."""

    def run(result):
        folder = tmp_path_factory.mktemp("report")
        source = folder / "source.json"
        source.write_text(json.dumps(result))
        outputs = ["--html", folder / "result.html", "--tsv", folder / "result.tsv"]
        subprocess.run([command.HODO, "report", source, *outputs], check=True, timeout=120, stdout=subprocess.DEVNULL)
        return folder

    return run


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for all tests."""
    browser = Browser()
    yield browser
    browser.close()

"""Where results go: a place that cannot be written to, a full disk, standard output, and other forms of the same."""

import command
import contract
import pytest
import terminal

RUN = ["bench", "tcp", "--test", "latency", "--sizes", "64", *command.SHORT]


@pytest.mark.parametrize("form", ["--json", "--tsv", "--html"])
def test_an_unwritable_place_is_told_before_anything_is_measured(form, tmp_path):
    place = tmp_path / "nonesuch" / "result"
    command.refused(*RUN, form, place, status=(1, 2), says=["nonesuch"], within=10)
    command.refused(*RUN, form, tmp_path, status=(1, 2), says=[tmp_path.name], within=10)


@pytest.mark.parametrize("form", ["--json", "--tsv", "--html"])
def test_a_full_disk_is_told(form):
    command.refused(*RUN, form, "/dev/full", status=1, says=["/dev/full", "space"], within=20)


@pytest.mark.parametrize("form", ["--json", "--tsv"])
def test_standard_output_on_a_full_disk_is_told(form):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = command.hodo(*RUN, form, "-", within=20, stdout=full)
    assert done.returncode == 1 and "space" in done.stderr and "panicked" not in done.stderr, done.stderr


def test_a_reader_that_has_gone_is_no_panic():
    with command.started(*RUN, "--json", "-") as tester:
        tester.stdout.close()
        assert tester.wait(20) != 101
        tester.stdout = open("/dev/null", encoding="ascii")


def test_every_form_of_one_run(tmp_path):
    names = {"--json": "a.json", "--tsv": "a.tsv", "--html": "a.html", "--plot": "a.svg"}
    arguments = [word for form, name in names.items() for word in (form, tmp_path / name)]
    done = command.hodo(*RUN, *arguments)
    assert done.returncode == 0, done.stderr
    found = contract.parse((tmp_path / "a.json").read_text(encoding="utf-8"))["measurements"]
    rows = contract.parse_tsv((tmp_path / "a.tsv").read_text(encoding="utf-8"))
    assert len(found) == len(rows) == 1
    assert float(rows[0]["latency_p50_us"]) == pytest.approx(found[0]["latency_ns"]["p50"] / 1000, rel=0.01)
    assert (tmp_path / "a.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_a_report_is_rebuilt_from_json_alone(tmp_path):
    done = command.hodo(*RUN, "--json", tmp_path / "a.json", "--tsv", tmp_path / "a.tsv")
    assert done.returncode == 0, done.stderr
    again = command.hodo("report", tmp_path / "a.json", "--tsv", "-")
    assert again.returncode == 0, again.stderr
    assert again.stdout == (tmp_path / "a.tsv").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["", "{}", "[1, 2", '{"schema": "hodo.result/99"}', "\x00\x01"])
def test_a_file_that_is_no_result_is_named(text, tmp_path):
    (tmp_path / "wrong.json").write_text(text, encoding="utf-8")
    command.refused("report", tmp_path / "wrong.json", status=(1, 2), says=["wrong.json"], within=10)


def test_compare_pairs_what_is_the_same(tmp_path):
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    for path in (one, other):
        assert command.hodo(*RUN, "--json", path).returncode == 0
    assert command.hodo("compare", one, one, "--fail-below", "0.95").returncode == 0
    assert command.hodo("compare", one, other).returncode == 0
    assert command.hodo("compare", one, other, "--fail-below", "1000").returncode == 3


def test_a_remark_takes_the_place_of_the_line_that_is_rewritten():
    run = ["--stages", "--hub-pages", "127.0.0.1:1", "--test", "latency", "--mode", "receive", "--sizes", "4,64", "--count", "10", "--repeat", "1"]
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as board, command.hub() as hub:
        with terminal.started(24, 80, "bench", f"chtcp-2.0://{hub.at}?target=127.0.0.1:{command.place(board.uri)[1]}", *run) as one:
            assert one.end() == 0
    shown = [line[-1] for line in one.lines()]
    assert sum(line.startswith("the hub's stages are not known") for line in shown) == 2, shown
    assert not any("opening" in line for line in shown), shown

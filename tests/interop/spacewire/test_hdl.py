"""The link end in Rust against one in VHDL that shares no code with it, wire to wire, in a simulator of hardware (GHDL)."""

import subprocess

import command
import pytest

HDL = command.ROOT / "protocols/spacewire/hdl"
# GHDL's LLVM backend: the others cannot link foreign objects.
GHDL = "ghdl-llvm"
BOUND_S = 300


def run(*arguments, **options):
    try:
        done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=BOUND_S, check=False, **options)
    except FileNotFoundError:
        pytest.fail(f"{arguments[0]} is not there: ./test tools, or apt-get install {arguments[0]}")
    assert done.returncode == 0, f"{' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def library():
    # With the examples, for which the features of the tests are chosen.
    run(*command.BUILD, "--lib", "--examples", cwd=command.ROOT)
    return command.BUILT / "libhodo_spacewire_hdl.a"


@pytest.fixture(scope="module")
def rows(library, tmp_path_factory):
    """What the test bench printed, by the first column. It stops at the first mistake, with a status that is no success."""
    folder = tmp_path_factory.mktemp("bench")
    for name in ["hodo_spacewire", "link_end", "bench"]:
        run(GHDL, "-a", "--std=08", HDL / "example" / f"{name}.vhd", cwd=folder)
    run(GHDL, "-e", "--std=08", f"-Wl,{library}", "bench", cwd=folder)
    table = [line.split("\t") for line in run("./bench", cwd=folder).splitlines()]
    return lambda first: [row[1:] for row in table if row[0] == first]


def test_the_bench_comes_to_its_end(rows):
    assert len(rows("passed")) == 1
    assert rows("fcts") == [["769"]], "6,100 N-chars are 762 whole FCTs, and seven at the start"
    assert rows("time_codes") == [["64"]]


def test_start_up(rows):
    # ErrorReset and ErrorWait last for 19.2 us; a NULL and an FCT at 10 Mbit/s take 1.2 us.
    [[start_us]] = rows("start_us")
    assert 20.2 < float(start_us) < 21


def test_both_directions_reach_the_formula(rows):
    found = {int(size): tuple(map(float, rates)) for size, *rates in rows("rate")}
    # Mbit/s of data each way on a link of 200 Mbit/s, both saturated.
    expected = {1: 106.667, 8: 144.633, 60: 151.300, 1024: 152.317}
    assert found.keys() == expected.keys()
    for size, rates in found.items():
        assert rates == pytest.approx([expected[size]] * 3, rel=1e-3), f"{size} bytes: there, back, and the bench's formula"


def test_recovery(rows):
    found = {fault: float(us) for fault, us in rows("recovery")}
    assert found.keys() == {"parity_there", "parity_back", "silence_there"}
    assert all(20 < us < 25 for us in found.values()), found


def test_the_header_is_c_and_links(library, tmp_path):
    source = tmp_path / "open.c"
    source.write_text(
        '#include "hodo_spacewire.h"\n'
        "int main(void) {\n"
        "    int32_t end = hodo_spw_open(5000, 1, HODO_SPW_REV1, 56);\n"
        "    uint64_t counts[HODO_SPW_COUNTS];\n"
        "    for (int i = 0; i < 3900; i++) hodo_spw_step(end, 0, 0);\n"
        "    if (hodo_spw_state(end) != HODO_SPW_STARTED) return 1;\n"
        "    if (hodo_spw_counts(end, counts, HODO_SPW_COUNTS) != HODO_SPW_COUNTS) return 2;\n"
        "    if (counts[HODO_SPW_SENT_NULLS] != 1 || hodo_spw_counts(end, 0, 1) != HODO_SPW_NONE) return 3;\n"
        "    return hodo_spw_close(end) == 1 && hodo_spw_step(end, 1, 1) == 0 ? 0 : 4;\n"
        "}\n",
        encoding="utf-8",
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-I", HDL / "include"]
    run("cc", *flags, source, library, "-lpthread", "-ldl", "-lm", "-o", tmp_path / "open")
    run(tmp_path / "open")

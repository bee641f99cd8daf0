"""The HTML page in a headless Chromium: drawn, quiet, alone, readable, and safe against the names in it."""

import copy
import pathlib
import re
import subprocess

import command
import pytest

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\u2028&amp;"


@pytest.fixture(scope="module")
def folder(render, sample):
    return render(sample)


@pytest.fixture
def page(browser, folder):
    browser.open(folder / "result.html")
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == []


def boxes(browser, selector):
    return browser.run(
        f"[...document.querySelectorAll({selector!r})].map((e) => e.getBBox()).map((b) => [b.width, b.height])"
    )


def words(browser):
    """What there is to read, also what is folded away; not the data and the program."""
    return browser.run("['header', 'main', 'footer'].map((part) => document.querySelector(part).textContent).join(' ')")


def titles(browser):
    return browser.run("[...document.querySelectorAll('figure h3')].map((e) => e.textContent)")


def choose(browser, name):
    """Choose a test by the name on its card."""
    browser.run(
        "[...document.querySelectorAll('.test')]"
        f".find((card) => card.querySelector('.name').textContent === {name!r}).click()"
    )


def luminance(color):
    channels = [int(value) / 255 for value in re.findall(r"\d+", color)[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(browser, selector):
    """The contrast of an element's text with the first opaque background behind it, as WCAG defines it."""
    colors = browser.run(f"""(() => {{
        let at = document.querySelector({selector!r});
        const ink = getComputedStyle(at).color;
        while (getComputedStyle(at).backgroundColor === 'rgba(0, 0, 0, 0)') at = at.parentElement;
        return [ink, getComputedStyle(at).backgroundColor];
    }})()""")
    dark, light = sorted(luminance(color) for color in colors)
    return (light + 0.05) / (dark + 0.05)


def test_the_browser_notices_what_the_others_rely_on(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='missing.png'><script>console.error('oh'); throw new Error('no')</script>")
    browser.open(bad)
    assert len(browser.complaints()) >= 2
    assert any(url.endswith("missing.png") for url in browser.requests())


def test_a_simulated_link_is_not_taken_for_a_real_one(browser, render, sample):
    result = copy.deepcopy(sample)
    real, simulated = result["measurements"][:2]
    simulated["link"] = f"sim+{simulated['protocol']}://?delay=5us"
    result["measurements"] = [real, simulated]
    browser.open(render(result) / "result.html")
    names = browser.run("[...document.querySelectorAll('.test .name')].map((e) => e.textContent)")
    assert names == [f"tcp · {real['test']}", f"sim+tcp · {simulated['test']}"]
    assert "Hodoscope: tcp, sim+tcp" in browser.run("document.title")


def test_every_test_has_its_plots_drawn(page, sample):
    names = list(dict.fromkeys(f"{m['protocol']} · {m['test']}" for m in sample["measurements"]))
    assert page.run("[...document.querySelectorAll('.test .name')].map((e) => e.textContent)") == names
    for name in names:
        choose(page, name)
        drawn = boxes(page, "svg.plot path.curve")
        assert len(drawn) >= 2, name
        assert all(width > 0 for width, _ in drawn), name
        assert any(height > 0 for _, height in drawn), name
        assert "Rate over time" in titles(page)


def test_the_rate_test_shows_rate_cpu_times_and_the_limit(page):
    choose(page, "tcp · rate")
    rates = ["Payload rate", "CPU", "Operations", "Average time"]
    assert titles(page) == [*rates, "Time of an operation", "Distribution of times", "Rate over time"]
    limits = boxes(page, "figure:first-child svg path.limit")
    assert len(limits) == 3 and all(width > 0 and height > 0 for width, height in limits)


def edges(browser, selector):
    """The left and right edge of each element on the screen."""
    return browser.run(
        f"[...document.querySelectorAll({selector!r})].map((e) => e.getBoundingClientRect()).map((r) => [r.left, r.right])"
    )


def test_stages_are_a_waterfall_for_each_measurement(page, sample):
    choose(page, "tcp · latency")
    found = [m for m in sample["measurements"] if m["test"] == "latency" and m["stages"]]
    assert page.run("document.querySelectorAll('.group:not([hidden]) svg.stages').length") == len(found)
    assert titles(page)[-1].startswith("Where the time goes")
    for place, measured in enumerate(found):
        drawn = f"figure:has(svg.stages):nth-last-of-type({len(found) - place}) rect.stage"
        *rows, whole = edges(page, drawn)
        assert len(rows) == len(measured["stages"]) + 1, "the way out and the way back have a row each"
        # The stages of this side end where the next begins, those within the third begin and end with it.
        first, second, around, *within, last = rows
        assert whole == pytest.approx([first[0], last[1]], abs=0.1)
        for chain in ([first, second, around, last], within):
            assert all(one[1] == pytest.approx(two[0], abs=0.1) for one, two in zip(chain, chain[1:]))
        assert [within[0][0], within[-1][1]] == pytest.approx(around, abs=0.1)
        shares = [stage["share"] for stage in measured["stages"] if stage["side"] == "local"]
        length = whole[1] - whole[0]
        assert [(right - left) / length for left, right in (first, second, around, last)] == pytest.approx(shares, abs=5e-3)
    text = page.run("document.querySelector('svg.stages').textContent")
    assert all(word in text for word in ("62.0 %", "wire and far end, here", "network, waking, out", "together"))


@pytest.mark.parametrize("width", [390, 600, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_the_words_of_a_waterfall_never_overlap(browser, render, sample, width, dark):
    result = copy.deepcopy(sample)
    (measured, *_) = [m for m in result["measurements"] if m["stages"]]
    result["measurements"] = [measured]
    # One stage takes nearly all the time, the others almost none, and one has a name without an end.
    for stage in measured["stages"]:
        stage["share"] = 0.9997 if stage["name"] == "wire and far end" else 0.0001
        stage["mean_ns"] = 999_700.0 if stage["name"] == "wire and far end" else 100.0
    measured["stages"][0]["name"] = "decode, source, encode, " * 4
    browser.open(render(result) / "result.html", width=width, dark=dark)
    words = browser.run("""[...document.querySelectorAll('svg.stages text')].map((e) => e.getBoundingClientRect())
        .map((r) => [r.left, r.top, r.right, r.bottom])""")
    for place, one in enumerate(words):
        for two in words[place + 1:]:
            apart = one[2] <= two[0] or two[2] <= one[0] or one[3] - 1 <= two[1] or two[3] - 1 <= one[1]
            assert apart, (one, two)
    bars = browser.run("""[...document.querySelectorAll('svg.stages rect')].map((e) => e.getBoundingClientRect())
        .map((r) => [r.left, r.top, r.right, r.bottom])""")
    assert all(right - left >= 1 for left, _, right, _ in bars), "the shortest stage can be seen"
    assert all(bar[1] >= word[3] - 1 or bar[3] <= word[1] + 1 for bar in bars for word in words), "no word stands on a bar"
    right = browser.run("document.querySelector('svg.stages').getBoundingClientRect().right")
    assert max(word[2] for word in words) <= right + 1 and browser.run("document.documentElement.scrollWidth") <= width
    if width >= 600:
        assert min(bottom - top for _, top, _, bottom in words) >= 12, "large enough to read"
    ink, paper = (
        browser.run(f"getComputedStyle(document.querySelector('{selector}')).{look}")
        for selector, look in (("svg.stages text.label", "fill"), ("figure", "backgroundColor"))
    )
    low, high = sorted(map(luminance, (ink, paper)))
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_phone_shows_rate_and_verdict_without_scrolling(browser, folder):
    browser.open(folder / "result.html", width=390, height=844)
    choose(browser, "tcp · rate")
    heads = browser.run("[...document.querySelectorAll('#table th:not(.fixed)')].map((e) => e.textContent)")
    assert heads[:4] == ["mode", "size", "payload rate", "verdict"]
    right = browser.run(
        "Math.max(...[...document.querySelectorAll('#table .badge')].map((e) => e.getBoundingClientRect().right))"
    )
    assert 0 < right <= 390
    legend = browser.run("document.querySelector('#legend').innerText")
    assert all(word in legend for word in ("stable", "may be quoted", "drifting", "slope or a step", "of limit"))
    assert browser.run("document.documentElement.scrollWidth") <= 390


def test_pictures_name_host_kernel_date_and_commit(sample, tmp_path):
    source = pathlib.Path(__file__).with_name("sample.json")
    subprocess.run([command.HODO, "report", source, "--out", tmp_path], check=True, timeout=60, stdout=subprocess.DEVNULL)
    pictures = sorted(tmp_path.glob("**/*.svg"))
    assert pictures
    environment = sample["environment"]
    for picture in pictures:
        text = picture.read_text(encoding="utf-8")
        for fact in (environment["host"], environment["kernel"], environment["started"], sample["tool"]["commit"]):
            assert fact in text, picture


def test_without_stages_there_is_no_waterfall(page):
    choose(page, "tcp · rate")
    assert page.run("document.querySelectorAll('svg.stages').length") == 0


def test_a_click_in_the_legend_hides_and_shows_a_curve(page):
    choose(page, "tcp · rate")
    curves = "document.querySelector('figure').querySelectorAll('path.curve').length"
    key = "document.querySelector('figure .legend button')"
    assert page.run(curves) == 3
    page.run(f"{key}.click()")
    assert page.run(curves) == 2 and page.run(f"{key}.getAttribute('aria-pressed')") == "false"
    page.run(f"{key}.click()")
    assert page.run(curves) == 3


def test_hiding_every_curve_is_no_error(page):
    page.run("document.querySelectorAll('figure .legend button').forEach((key) => key.click())")
    assert page.run("document.querySelectorAll('path.curve').length") == 0


def test_hover_shows_values(page):
    choose(page, "tcp · rate")
    x, y = page.run("""(() => {
        const box = document.querySelector('svg.plot circle.dot').getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    })()""")
    page.move(x + 1, y + 1)
    tip = page.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    assert "64 B: " in tip and "bit/s" in tip and "stable" in tip


def test_the_table_sorts_and_widens(page, sample):
    choose(page, "tcp · rate")
    rows = "document.querySelectorAll('#table tbody tr').length"
    assert page.run(rows) == 18
    page.run("document.getElementById('only').click()")
    assert page.run(rows) == len(sample["measurements"])
    head = "[...document.querySelectorAll('#table th button')].find((b) => b.textContent === 'payload rate')"
    column = page.run(f"[...document.querySelectorAll('#table th button')].indexOf({head})")
    cells = f"[...document.querySelectorAll('#table tbody tr')].map((row) => row.children[{column}].textContent)"
    page.run(f"{head}.click()")
    rising = page.run(cells)
    page.run(f"{head}.click()")
    falling = page.run(cells)
    assert rising[0] == falling[-1] == "83.66 Mbit/s"
    assert falling[0] == rising[-1] == "49.66 Gbit/s"


def test_everything_is_listed(page, sample):
    text = words(page)
    for measurement in sample["measurements"]:
        state, why = measurement["verdict"]["state"], measurement["verdict"]["text"]
        assert why.removeprefix(f"{state}: ") in text
        assert f"{state} {state}:" not in text, "the badge says it already"
        assert measurement["limit"]["formula"] in text and measurement["limit"]["assumes"] in text
    for fact in ("bench1", "6.1.0-18-amd64", "cubic", "65536", "here cpu 0, far end cpu 1", "hodo bench tcp"):
        assert fact in text
    assert "NaN" not in text and "undefined" not in text and "[object" not in text
    assert page.run("document.querySelectorAll('#full details').length") == len(sample["measurements"])


@pytest.mark.parametrize("dark", [False, True])
def test_both_colour_schemes_are_readable(browser, folder, dark):
    browser.open(folder / "result.html", dark=dark)
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (luminance(background) < 0.1) == dark
    for selector in ("h1", "#provenance", ".test .about", "#table td", "#table th", ".legend button", ".badge", "dt"):
        assert contrast(browser, selector) >= 4.5, selector
    browser.run("document.getElementById('theme').click()")
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (luminance(background) < 0.1) != dark
    assert contrast(browser, "#table td") >= 4.5


def test_prints_everything_and_returns_to_the_screen(page):
    before = page.run("document.querySelectorAll('figure').length")
    document = page.pdf()
    assert document.startswith(b"%PDF") and len(document) > 50_000
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("document.querySelectorAll('section.group').length") == 6
    assert page.run("[...document.querySelectorAll('#full details')].every((entry) => entry.open)")
    page.run("window.dispatchEvent(new Event('afterprint'))")
    assert page.run("document.querySelectorAll('figure').length") == before


@pytest.mark.parametrize("width", [360, 390, 768, 1280, 1920])
def test_fits_every_screen(browser, folder, width):
    browser.open(folder / "result.html", width=width, height=800)
    assert browser.run("document.documentElement.scrollWidth") <= width
    gap, room, edges = browser.run("""(() => {
        const charts = document.querySelector('.charts'), box = charts.getBoundingClientRect();
        const edges = [...charts.children].map((e) => e.getBoundingClientRect()).map((b) => [b.left - box.left, b.width]);
        return [parseFloat(getComputedStyle(charts).columnGap), box.width, edges];
    })()""")
    columns = len({left for left, _ in edges})
    assert all(abs(wide - (room - (columns - 1) * gap) / columns) < 1 for _, wide in edges), "charts fill their row"
    assert all(wide < 780 for _, wide in edges), "and are not blown up"
    if width >= 1280:
        hidden = browser.run("""(() => {
            const room = document.querySelector('.scroll').getBoundingClientRect().right;
            return [...document.querySelectorAll('#table .badge')].some((e) => e.getBoundingClientRect().right > room);
        })()""")
        assert not hidden, "no verdict has to be scrolled to"


def test_names_are_text(browser, render, sample):
    result = copy.deepcopy(sample)
    result["environment"]["host"] = HOSTILE
    for measurement in result["measurements"]:
        measurement["link"] = measurement["protocol"] = measurement["wait"] = HOSTILE
        measurement["verdict"]["text"] = measurement["limit"]["formula"] = HOSTILE
        for stage in measurement["stages"]:
            stage["name"] = HOSTILE
    browser.open(render(result) / "result.html")
    assert browser.run("window.hacked === undefined && document.querySelectorAll('script, img').length === 2")
    assert HOSTILE in browser.run("document.getElementById('provenance').textContent")
    assert browser.complaints() == [] and browser.requests() == []


def test_what_is_null_is_shown_as_unknown(browser, render, sample):
    result = copy.deepcopy(sample)
    result["environment"] = {key: [] if key == "arguments" else None for key in result["environment"]}
    for measurement in result["measurements"]:
        measurement["latency_ns"] = measurement["limit"] = measurement["share_of_limit"] = None
        measurement["cpu"] = {key: None for key in measurement["cpu"]}
        measurement["intervals"] = []
        for estimate in measurement["rate"].values():
            estimate["low"] = estimate["high"] = estimate["confidence"] = None
    browser.open(render(result) / "result.html")
    text = words(browser)
    assert "NaN" not in text and "undefined" not in text and "unknown" in text
    assert browser.complaints() == []


def test_an_interface_that_tells_little_is_not_told_in_units(browser, render, sample):
    result = copy.deepcopy(sample)
    result["environment"]["nic"] = {**dict.fromkeys(("driver", "speed_mbit_per_s", "duplex", "rx_usecs", "tx_usecs")), "name": "lo", "offloads": []}
    browser.open(render(result) / "result.html")
    assert "unknown µs" not in words(browser)
    result["environment"]["nic"]["rx_usecs"] = 3
    browser.open(render(result) / "result.html")
    result["environment"]["nic"]["rx_adaptive"] = True
    browser.open(render(result) / "result.html")
    assert "receive 3 µs, adaptive; transmit unknown" in words(browser)


def test_a_result_without_measurements_is_a_page(browser, render, sample):
    browser.open(render({**sample, "measurements": []}) / "result.html")
    assert browser.complaints() == []
    assert "bench1" in words(browser)

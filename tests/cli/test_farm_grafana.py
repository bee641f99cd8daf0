"""The dashboard for Grafana shows what there is."""

import json
import re

import command
import farms

DASHBOARD = command.ROOT / "docs/examples/farm-grafana.json"


def expressions(dashboard):
    """Every query of it, with what it is named by."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["definition"]


def test_every_metric_and_label_of_the_dashboard_is_told():
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    with farms.controller() as controller, farms.node(controller):
        farms.source(controller, "--events", 100)
        told = controller.page("/metrics")
    names = set(re.findall(r"^(\w+)[{ ]", told, re.MULTILINE))
    shown = list(expressions(dashboard))
    assert len(shown) > 20
    for title, expression in shown:
        metrics = re.findall(r"\b(?:farm|process)_\w+", expression)
        assert metrics, f"{title}: {expression}"
        for metric in metrics:
            assert metric in names, f"{title}: there is no {metric}"
        # `instance` is Prometheus's own.
        for label, value in re.findall(r'\b(\w+)=~?"([^"]*)"', expression):
            assert label == "instance" or f'{label}="{value}"' in told, f"{title}: {label}={value}"
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                assert label == "instance" or f'{label}="' in told, f"{panel['title']}: {label}"


def test_no_two_panels_are_one():
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells

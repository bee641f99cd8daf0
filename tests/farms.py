"""An event farm of real processes for a test."""

import contextlib
import http.client
import json
import re
import signal
import socket

import command

FINAL = ["accepted", "rejected", "quarantined", "incomplete"]


class Daemon:
    """One that listens, and its pages."""

    def __init__(self, process):
        self.process = process
        said = "".join(process.stdout.readline() for _ in range(2))
        listening, pages = re.search(r"listening on ([\d.:]+)", said), re.search(r"http://([\d.:]+)", said)
        assert listening and pages, f"it does not say where it is:\n{said}{process.stdout.read()}"
        self.at, self.pages = listening[1], pages[1]

    def ask(self, path, method="GET", headers=None, data=None, over_tcp=None):
        """Status and text of a page, over TCP, or of what an action answers, over the Unix socket."""
        over_tcp = method == "GET" if over_tcp is None else over_tcp
        connection = http.client.HTTPConnection(self.pages, timeout=20)
        if not over_tcp:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(20)
            connection.sock.connect(f"\0hodo/{self.pages}")
        with contextlib.closing(connection):
            connection.request(method, path, data, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def page(self, path):
        status, text = self.ask(path)
        assert status == 200, f"{path}: {status} {text}"
        return text

    def act(self, path):
        status, text = self.ask(path, "POST")
        assert status == 200, f"{path}: {status} {text}"
        return text

    def end(self):
        """Ends it in order; answers its status and what it has said."""
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=30)[0]
        return self.process.returncode, said


class Controller(Daemon):
    """A controller that runs."""

    def farm(self):
        return json.loads(self.page("/farm"))

    def events(self):
        return self.farm()["events"]

    def wait_for(self, condition, what):
        command.wait_until(lambda: condition(self.farm()), what)

    def wait_for_nodes(self, count):
        self.wait_for(lambda farm: farm["connections"]["nodes"] == count, f"{count} nodes are there")

    def balanced(self):
        """The events, once each that was taken in has its verdict."""
        self.wait_for(lambda farm: farm["events"]["in_hand"] == 0, "no event is in hand")
        events = self.events()
        assert events["taken_in"] == sum(events[verdict] for verdict in FINAL), events
        return events


class Builder(Daemon):
    """A builder that runs."""

    def state(self):
        return json.loads(self.page("/builder"))

    def wait_for(self, condition, what):
        command.wait_until(lambda: condition(self.state()), what)


@contextlib.contextmanager
def controller(*options, listen=None, **more):
    at = ["--listen", listen or command.free_address(), "--metrics", "127.0.0.1:0"]
    with command.started("farm", "controller", *at, *options, **more) as process:
        yield Controller(process)


@contextlib.contextmanager
def builder(controller, *options, listen=None, **more):
    at = ["--listen", listen or command.free_address(), "--metrics", "127.0.0.1:0", "--to", controller.at]
    with command.started("farm", "builder", *at, *options, **more) as process:
        yield Builder(process)


@contextlib.contextmanager
def node(controller, *options, **more):
    with command.started("farm", "node", "--to", controller.at, *options, **more) as process:
        yield process


def source(controller, *options):
    """Gives events to the end; answers what the source has said."""
    done = command.hodo("farm", "source", "--to", controller.at, *options)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout

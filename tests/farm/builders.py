"""Builders of a farm, and sources of theirs on bare sockets."""

import contextlib
import json
import time
import urllib.request

import parts
import peer


def started(farm, controller, sources, *options, listen="127.0.0.1:0", prefix=()):
    """A builder, where it listens, and its pages."""
    words = ["--to", controller.at, "--sources", sources, "--listen", listen, "--metrics", "127.0.0.1:0"]
    made = farm.part("builder", *words, *options, prefix=prefix)
    made.at, made.pages = made.said(r"listening on (\S+)")[1], made.said(r"pages on (http://[\w.:]+)")[1]
    return made


def state(builder, namespace=None):
    with parts.inside(namespace), contextlib.closing(urllib.request.urlopen(builder.pages + "/builder")) as page:
        return json.loads(page.read())


def until(builder, condition, what, within=parts.PATIENCE_S):
    """Its state, once it is so."""
    give_up = time.monotonic() + within
    while not condition(page := state(builder)):
        assert time.monotonic() < give_up, f"after {within} s still not so: {what}\n{page}\n{builder.text()}"
        time.sleep(0.01)
    return page


def greeted(builder, number, instance=1):
    """A source that has greeted once the builder knows of the run."""
    for _ in range(100):
        link = peer.Peer(builder.at)
        link.send(peer.hello(peer.SOURCE, number, instance=instance))
        link.of(peer.HELLO)
        # Before it does, it says that it takes nothing, and ends the connection when it does.
        link.send(peer.message(peer.PING, 9), peer.message(peer.RUN, 1))
        if link.of(peer.PONG, peer.DRAIN)[0] == peer.PONG:
            return link
        link.wait_for_the_end()
        link.close()
    raise AssertionError(builder.text())

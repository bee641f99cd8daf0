"""A headless Chromium, driven over the DevTools protocol: enough to open a page, watch it and look at it."""

import base64
import itertools
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import websocket

START_LIMIT_S = 60
REPLY_LIMIT_S = 60


class Browser:
    """One Chromium with one page. What the page logs, throws and requests is kept."""

    def __init__(self):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            raise FileNotFoundError("no Chromium here: install the Debian package `chromium`")
        self.profile = tempfile.TemporaryDirectory(prefix="hodo-browser-", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions",
             "--hide-scrollbars", "--remote-debugging-port=0", "--remote-allow-origins=*",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self):
        self.numbers = itertools.count(1)
        self.events = []
        port, path = self._port_file().read_text().split()
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=REPLY_LIMIT_S)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _port_file(self):
        """The file in which Chromium names its port, once it listens."""
        path = pathlib.Path(self.profile.name, "DevToolsActivePort")
        deadline = time.monotonic() + START_LIMIT_S
        while not (path.exists() and len(path.read_text().split()) == 2):
            if self.process.poll() is not None:
                raise RuntimeError(f"Chromium ended at once with status {self.process.returncode}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"Chromium names no port within {START_LIMIT_S} s")
            time.sleep(0.05)
        return path

    def call(self, method, **parameters):
        """Send one command and return its result; events that come meanwhile are kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            reply = json.loads(self.socket.recv())
            if reply.get("id") == number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]
            if "method" in reply:
                self.events.append(reply)

    def open(self, path, *, width=1400, height=900, dark=False):
        """Open a file and wait until it is loaded and drawn."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.prefer("dark" if dark else "light")
        self.url = pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", url=self.url)
        deadline = time.monotonic() + REPLY_LIMIT_S
        while self.run("location.href + document.readyState") != self.url + "complete":
            assert time.monotonic() < deadline, f"{self.url} does not load"
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def prefer(self, scheme):
        """Say what the reader's system prefers: `light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def run(self, expression):
        """Evaluate JavaScript in the page and return its value."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def complaints(self):
        """Errors and warnings of the console, and exceptions, since the page was opened."""
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"].get("exception", parameters["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(parameters["args"])
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        """Addresses that the page asked for, beside itself and what it carries inside."""
        asked = [event["params"]["request"]["url"] for event in self.events
                 if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if url != self.url and not url.startswith("data:")]

    def move(self, x, y):
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, *, full=False):
        """The page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"])

    def pdf(self):
        """The page as it would be printed."""
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])

    def close(self):
        """End the browser and remove its profile."""
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()

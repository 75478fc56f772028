"""Looks at pages in headless Chromium, at the width of a desk and of a phone, in light and in dark.

A page passes when it logs no error, loads nothing, is no wider than the screen, cuts no text off, and draws every plot.
Needs Python and Chromium alone: the browser is driven over a pair of pipes.

    check.py [--shots DIR] [--seconds N] PAGE.html ...
"""

import argparse
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SCREENS = {"desk": (1280, 900, False), "phone": (390, 844, True)}
# What is wider than the screen, but for what scrolls by itself; what holds a canvas without anything drawn.
LOOK = """(() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (e) => e.closest('.scroll, nav') !== null;
  const over = [...document.body.querySelectorAll('*')].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > wide + 1 || box.left < -1) && !scrolls(e);
  }).slice(0, 5).map((e) => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 40));
  const cut = [...document.body.querySelectorAll('h1,h2,h3,p,td,th,dd,dt,li,button')].filter((e) =>
    e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).overflow !== 'visible' && !scrolls(e)
  ).slice(0, 5).map((e) => e.tagName + ' ' + e.textContent.slice(0, 40));
  const blank = [...document.querySelectorAll('[data-plot]')].filter((box) => {
    const canvas = box.querySelector('canvas');
    if (!canvas || canvas.width === 0) return true;
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < pixels.length && colours.size < 4; i += 4) {
      if (pixels[i + 3] > 0) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
    }
    return colours.size < 4;
  }).map((box) => box.dataset.plot);
  return {wide: document.documentElement.scrollWidth > wide + 1, over, cut, blank,
    plots: document.querySelectorAll('[data-plot]').length, height: document.documentElement.scrollHeight};
})()"""


class Browser:
    """A browser and one page of it."""

    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="browser-")
        to_browser, self.out = os.pipe()
        self.incoming, from_browser = os.pipe()

        def pipes():  # the browser reads from 3 and writes to 4
            os.dup2(to_browser, 100)
            os.dup2(from_browser, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                 "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={self.home}"]
        self.process = subprocess.Popen([program, *flags], preexec_fn=pipes, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def read(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.incoming], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.incoming, 1 << 20)
            if not more:
                raise RuntimeError("the browser is gone")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while True:
            answer = self.read(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method, seconds=60):
        until = time.monotonic() + seconds
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read(until))

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")


def look(browser, page, screen, scheme, shots, sections):
    """What is wrong with a page on a screen, and how long it took to open."""
    width, height, mobile = SCREENS[screen]
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    address = page.resolve().as_uri()
    browser.ask("Page.navigate", url=address)
    browser.wait_for("Page.loadEventFired")
    opened = browser.value("performance.timing.loadEventEnd - performance.timing.navigationStart") or 0
    # Every plot is drawn as on paper, where all of the page is in view.
    browser.value("window.dispatchEvent(new Event('beforeprint'))")
    browser.value("new Promise((done) => setTimeout(done, 300))")
    found = browser.value(LOOK)
    wrong = []
    for event in browser.events:
        kind, params = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            wrong.append("exception: " + details.get("exception", {}).get("description", details.get("text", "")))
        elif kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            wrong.append("console: " + " ".join(str(arg.get("value", arg)) for arg in params["args"])[:300])
        elif kind == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            wrong.append("log: " + params["entry"]["text"][:300])
        elif kind == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("data:", address)):
            wrong.append("loads " + params["request"]["url"][:120])
    if found["wide"] or found["over"]:
        wrong.append(f"wider than the screen: {found['over']}")
    if found["cut"]:
        wrong.append(f"cut off: {found['cut']}")
    if found["blank"]:
        wrong.append(f"plots without anything drawn: {found['blank']}")
    if shots:
        height = min(found["height"], 12000)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        (shots / f"{page.parent.name}-{page.stem}-{screen}-{scheme}.png").write_bytes(base64.b64decode(data))
    for section in sections:
        box = browser.value(f"(() => {{ const b = document.querySelector('{section}').getBoundingClientRect(); "
                            "return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()")
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        data = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        name = "".join(letter for letter in section if letter.isalnum())
        (shots / f"{name}-{screen}-{scheme}.png").write_bytes(base64.b64decode(data))
    return wrong, opened / 1000, found["plots"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path, help="keep pictures here")
    parser.add_argument("--sections", default="", help="with --shots: these alone too, as selectors by commas")
    parser.add_argument("--seconds", type=float, default=10, help="longest time to open")
    asked = parser.parse_args()
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        sys.exit("no Chromium is there (apt-get install chromium)")
    if asked.shots:
        asked.shots.mkdir(parents=True, exist_ok=True)
    sections = [section for section in asked.sections.split(",") if section and asked.shots]
    browser = Browser(program)
    failed = False
    try:
        for page in asked.pages:
            for screen in SCREENS:
                for scheme in ("light", "dark"):
                    wrong, opened, plots = look(browser, page, screen, scheme, asked.shots, sections)
                    if opened > asked.seconds:
                        wrong.append(f"takes {opened:.1f} s to open")
                    failed |= bool(wrong)
                    says = "; ".join(wrong) or "well"
                    print(f"{page} {page.stat().st_size / 1e6:.2f} MB {screen} {scheme}: {plots} plots, open in {opened:.2f} s: {says}")
    finally:
        browser.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

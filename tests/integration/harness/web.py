"""Debian's Chromium, driven by Playwright, and the page of a broker in it."""

import functools
import pathlib
import shutil
import subprocess
import sys

import pytest

from harness.connect import make_token, port_of

SUPPORT = pathlib.Path(__file__).resolve().parents[2] / "support"
# A busy machine may take so long for what a person waits a second for.
PATIENCE_MS = 20_000
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}
LOOKS = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": {"viewport": PHONE}}
HTTP = "heartbeat_interval: 3s\nhttp:\n  listen: 127.0.0.1:{port}\n"


@functools.cache
def library():
    """The directory of Playwright; its modules can be imported afterwards."""
    found = subprocess.run([SUPPORT / "find-playwright"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    sys.path.append(found)
    return pathlib.Path(found)


class Browser:
    """A Chromium without a window. Errors of the pages' scripts, and what their policy forbids, are kept."""

    def __init__(self):
        library()
        from playwright.sync_api import sync_playwright
        self.playwright = sync_playwright().start()
        # Root has no sandbox; containers have a small /dev/shm.
        self.chromium = self.playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        self.contexts = []
        self.errors = []

    def open(self, url, token=None, **options):
        """A new page without a past, logged in with the token."""
        context = self.chromium.new_context(viewport=DESKTOP, **options) if "viewport" not in options else self.chromium.new_context(**options)
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self._note(message))
        if token:
            context.add_init_script(f"sessionStorage.getItem('muster.token') ?? sessionStorage.setItem('muster.token', '{token}')")
        page.goto(url)
        return page

    def _note(self, message):
        # An answer with an error is one of HTTP; the page shows it.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def close_pages(self):
        for context in self.contexts:
            context.close()
        self.contexts.clear()
        errors, self.errors = self.errors, []
        return errors

    def close(self):
        self.close_pages()
        self.chromium.close()
        self.playwright.stop()


def violations(page):
    """Lists as one text whatever axe finds wrong with the page."""
    axe = (library() / "axe_playwright_python" / "axe.min.js").read_text()
    # The policy of the page lets no script in; the debugger's own evaluation is not bound by it.
    page.evaluate(f"() => {{ {axe} }}")
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    return "\n".join(f"{one['id']}: {one['help']}: {node['html'][:200]} {node.get('failureSummary', '')}" for one in found for node in one["nodes"][:3])


class Site:
    """The page of one broker."""

    def __init__(self, world, broker, browser):
        self.world = world
        self.browser = browser
        self.url = f"http://127.0.0.1:{port_of(broker)}"
        self.tokens = 0

    def token(self, user="ada", role="SUBMITTER"):
        self.tokens += 1
        return make_token(self.world, f"web{self.tokens}", user=user, role=role)

    def open(self, path="/", user="ada", role="SUBMITTER", **options):
        return self.browser.open(self.url + path, self.token(user, role) if role else None, **options)


def row(page, job):
    """The row of a job in the list."""
    return page.locator(".row", has=page.locator(f"a.job[href='/jobs/{job}']"))


def is_in_sight(locator):
    return locator.evaluate("e => { const r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; }")


def web_fixtures():
    """Fixtures, which a test file calls chromium, browser, broker and site: a browser, and a broker that serves it its page."""
    @pytest.fixture(scope="module")
    def chromium():
        made = Browser()
        yield made
        made.close()

    @pytest.fixture
    def browser(chromium):
        """No script of the pages may fail, and none may be stopped by the policy."""
        yield chromium
        assert chromium.close_pages() == []

    @pytest.fixture
    def broker(world):
        return world.make_broker(config=HTTP.format(port=0)).start()

    @pytest.fixture
    def site(world, broker, browser):
        return Site(world, broker, browser)

    return chromium, browser, broker, site

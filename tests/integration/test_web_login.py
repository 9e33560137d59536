"""Login in the web page by a real OpenID provider: authorization code with PKCE."""

import json
import urllib.parse

import pytest

from harness.api import RUNNING, argv_spec, script_spec
from harness.oidc import Provider
from harness.wait import eventually
from harness.web import LOOKS, Site, row, violations, web_fixtures

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("web")]

chromium, browser, _, _ = web_fixtures()


@pytest.fixture
def provider(world):
    made = Provider(world.path("provider"))
    made.tell("set", groups=["ml"])
    yield made
    made.close()


def start(world, provider, browser, **changes):
    oidc = {"issuer": provider.issuer, "audience": "muster", "ca_file": str(provider.ca_file), "group_roles": {"ml": "viewer"},
            "user_roles": {"root@example.org": "admin"}, "clock_skew": "0s", **changes}
    broker = world.make_broker(config=json.dumps({"oidc": oidc, "heartbeat_interval": "3s", "http": {"listen": "127.0.0.1:0"}})).start()
    eventually(lambda: "oidc_keys" in broker.log(), "the broker has the provider's keys")
    return Site(world, broker, browser)


@pytest.fixture
def site(world, provider, browser):
    return start(world, provider, browser)


def open_page(site, path="/jobs", **look):
    # The provider's certificate is that of a test's own CA.
    return site.open(path, role=None, ignore_https_errors=True, **look)


def button(page, provider):
    return page.get_by_role("button", name=f"Log in at {urllib.parse.urlsplit(provider.issuer).netloc}")


def sign_in(page, provider, person="ada"):
    """Does at the provider what leads back to the page."""
    button(page, provider).click()
    page.locator("input[name=login]").fill(person)
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def log_in(page, provider, person="ada"):
    sign_in(page, provider, person)
    page.locator(".me").get_by_text(f"oidc:{person}@example.org").wait_for()


def kept(page):
    return page.evaluate("({...sessionStorage})")


def test_a_person_logs_in_at_the_provider_and_comes_back_to_the_view(provider, site):
    page = open_page(site, "/jobs?filter=id+%3E+7")
    log_in(page, provider)
    assert page.url == f"{site.url}/jobs?filter=id+%3E+7"
    page.get_by_text("No job matches this filter.").wait_for()
    assert set(kept(page)) == {"muster.token", "muster.session"}
    assert page.evaluate("localStorage.length") == 0 and page.evaluate("document.cookie") == ""
    page.reload()
    page.locator(".me").get_by_text("viewer").wait_for()


def test_the_code_is_asked_for_with_pkce_and_only_of_the_provider(provider, site):
    page = open_page(site)
    asked, hosts = [], set()

    def note(request):
        asked.append(request)
        # The provider's own page loads what it likes.
        if page.url.startswith(site.url):
            hosts.add("{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(request.url)))
    page.on("request", note)
    log_in(page, provider)
    (to,) = [request for request in asked if urllib.parse.urlsplit(request.url).path == "/auth" and "client_id=" in request.url]
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(to.url).query))
    assert (query["response_type"], query["code_challenge_method"], query["redirect_uri"]) == ("code", "S256", f"{site.url}/login")
    assert len(query["code_challenge"]) == len(query["state"]) == len(query["nonce"]) == 43
    (answer,) = [request for request in asked if request.url == f"{provider.issuer}/token"]
    form = dict(urllib.parse.parse_qsl(answer.post_data))
    assert len(form["code_verifier"]) == 43 and "client_secret" not in form and "cookie" not in answer.headers
    assert hosts == {site.url, provider.issuer}


def test_the_policy_lets_the_page_call_the_provider_and_nobody_else(provider, site, chromium):
    page = open_page(site)
    button(page, provider).wait_for()
    policy = page.request.get(f"{site.url}/jobs").headers["content-security-policy"]
    assert f"connect-src 'self' {provider.issuer};" in policy and "unsafe" not in policy
    refused = page.evaluate("fetch('https://127.0.0.1:9/').then(() => '', (error) => String(error))")
    assert refused
    assert any("https://127.0.0.1:9/" in error and "Content Security Policy" in error for error in chromium.errors)
    chromium.errors.clear()


@pytest.mark.parametrize("changes, words", [
    ({"state": "x" * 43}, "was not begun in this tab"),
    ({"iss": "https://evil.example"}, "another identity provider answered"),
    ({}, "the identity provider refuses: "),
    ({"code": "", "error": "access_denied", "error_description": "<b>no</b>"}, "the identity provider refuses: <b>no</b>"),
], ids=["state", "issuer", "code", "error"])
def test_an_answer_that_is_not_to_this_login_logs_nobody_in(changes, words, provider, site):
    page = open_page(site)

    def forge(route):
        state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(route.request.url).query))["state"]
        answer = {"state": state, "code": "x" * 43, "iss": provider.issuer, **changes}
        address = json.dumps(f"{site.url}/login?{urllib.parse.urlencode(answer)}")
        route.fulfill(content_type="text/html", body=f"<script>location.replace({address})</script>")
    page.route(lambda url: url.startswith(f"{provider.issuer}/auth?"), forge)
    button(page, provider).click()
    page.get_by_role("alert").wait_for()
    assert words in page.get_by_role("alert").inner_text() and page.locator("main b").count() == 0
    assert page.url == f"{site.url}/login" and kept(page) == {}
    # A second try works.
    page.unroute_all()
    log_in(page, provider)
    assert page.url == f"{site.url}/jobs"


def test_a_token_of_another_login_is_not_taken(provider, site):
    page = open_page(site)
    page.route(lambda url: url.startswith(f"{provider.issuer}/auth?"), lambda route: route.continue_(url=route.request.url.replace("nonce=", "nonce=other")))
    sign_in(page, provider)
    assert "was made for another login" in page.get_by_role("alert").inner_text()
    assert kept(page) == {}


def test_a_login_goes_on_with_other_tokens_until_the_person_leaves(world, provider, browser):
    provider.tell("set", idTokenSeconds=6)
    site = start(world, provider, browser)
    page = open_page(site)
    log_in(page, provider)
    tokens = {kept(page)["muster.token"]}
    eventually(lambda: tokens.add(kept(page).get("muster.token")) or len(tokens) > 3, "the token was renewed, and again")
    # The list still follows: its stream goes on with another token.
    row(page, world.api(world.broker).submit(argv_spec("true"), held=True)).wait_for()
    page.locator(".me").get_by_text("viewer").wait_for()
    page.get_by_role("button", name="Log out").click()
    button(page, provider).wait_for()
    assert kept(page) == {}


def test_a_quiet_log_goes_on_over_several_tokens(world, provider, browser):
    provider.tell("set", idTokenSeconds=6)
    site = start(world, provider, browser)
    world.make_agent().start()
    api = world.api(world.broker)
    gate = world.gate()
    job = api.submit(script_spec(f"{gate.script()}; echo the end"))
    api.wait_state(job, RUNNING)
    page = open_page(site, f"/jobs/{job}/log")
    reads = []
    page.on("request", lambda request: reads.append(request) if request.url.endswith("/ReadLog") else None)
    log_in(page, provider)

    def is_opened_often():
        assert kept(page), "the page is logged out"
        return len(reads) > 3
    eventually(is_opened_often, "the log is read with the fourth token")
    gate.open()
    page.get_by_text("the end").wait_for()


def test_a_wrong_clock_of_the_browser_does_not_make_it_ask_for_tokens_again_and_again(world, provider, browser):
    page = open_page(start(world, provider, browser))
    page.add_init_script("const now = Date.now; Date.now = () => now() + 3600_000;")
    page.reload()
    asked = []
    page.on("request", lambda request: asked.append(request) if request.url == f"{provider.issuer}/token" else None)
    log_in(page, provider)
    assert page.evaluate("JSON.parse(sessionStorage['muster.session']).renewMs - Date.now()") > 200_000
    page.reload()
    page.locator(".me").get_by_text("viewer").wait_for()
    assert len(asked) == 1


def test_a_login_outlives_its_token_while_the_provider_is_away(world, provider, browser):
    provider.tell("set", idTokenSeconds=6)
    site = start(world, provider, browser)
    page = open_page(site)
    log_in(page, provider)
    provider.tell("close")
    page.get_by_text("No connection, trying again").wait_for()
    token = kept(page)["muster.token"]
    provider.tell("listen")
    eventually(lambda: kept(page)["muster.token"] != token, "the token was renewed")
    row(page, world.api(world.broker).submit(argv_spec("true"), held=True)).wait_for()
    page.locator(".me").get_by_text("viewer").wait_for()


def test_a_renewal_that_is_under_way_does_not_undo_a_logout(world, provider, browser):
    provider.tell("set", idTokenSeconds=6)
    page = open_page(start(world, provider, browser))
    log_in(page, provider)
    held = []
    page.route(f"{provider.issuer}/token", lambda route: held.append(route))
    eventually(lambda: page.evaluate("1") and held, "a renewal is under way")
    revoked = []
    page.on("request", lambda request: revoked.append(request) if request.url.endswith("/revocation") and request.method == "POST" else None)
    page.get_by_role("button", name="Log out").click()
    eventually(lambda: page.evaluate("1") and len(revoked) == 1, "the refresh token is revoked")
    tokens = {"id_token": "x", "refresh_token": "late"}
    held[0].fulfill(json=tokens, headers={"access-control-allow-origin": "*"})
    eventually(lambda: page.evaluate("1") and len(revoked) == 2, "that of the renewal is revoked, too")
    assert "token=late" in revoked[1].post_data
    button(page, provider).wait_for()
    assert kept(page) == {}


def test_a_login_that_ended_at_the_provider_asks_for_another(world, provider, browser):
    provider.tell("set", idTokenSeconds=8)
    site = start(world, provider, browser)
    page = open_page(site)
    log_in(page, provider)
    refresh = json.loads(kept(page)["muster.session"])["refreshToken"]
    revoked = page.request.post(f"{provider.issuer}/token/revocation", form={"token": refresh, "client_id": "muster"})
    assert revoked.ok
    page.get_by_label("Token").wait_for()
    assert kept(page) == {}
    provider.tell("close")
    button(page, provider).click()
    assert provider.issuer in page.get_by_role("alert").inner_text() and "CORS" in page.get_by_role("alert").inner_text()


def test_a_provider_that_lets_no_pages_in_is_explained(provider, site, chromium):
    provider.tell("set", allowsPages=False)
    page = open_page(site)
    sign_in(page, provider)
    assert "CORS" in page.get_by_role("alert").inner_text()
    chromium.errors.clear()


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_wrong_with_the_login(look, provider, site):
    page = open_page(site, **LOOKS[look])
    button(page, provider).wait_for()
    assert violations(page) == ""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

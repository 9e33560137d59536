"""The web page of a real broker, with real jobs, in Debian's Chromium."""

import gzip
import http.client
import os
import pathlib
import re
import subprocess

import pytest

from harness.api import CANCELED, FAILED, RUNNING, SUCCEEDED, argv_spec, script_spec
from harness.daemons import BIN
from harness.wait import eventually
from harness.web import HTTP, LOOKS, Site, row, violations, web_fixtures

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("web")]

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Each would run, load or break something if it were taken for HTML, an attribute, a URL or a terminal's own words.
HOSTILE = [
    "<script>window.hurt = 1</script>", "<img src=x onerror='window.hurt = 1'>", "\"><svg onload=window.hurt=1>", "javascript:window.hurt=1",
    "{{constructor.constructor('window.hurt=1')()}}", "</textarea><iframe srcdoc='<script>parent.hurt=1</script>'>", "&lt;b&gt;&#39;&quot;",
    "' onmouseover='window.hurt=1", "<a href=//evil.example>x</a>", "<style>*{display:none}</style>", "${window.hurt=1}", "\u202egnp.exe",
]


chromium, browser, broker, site = web_fixtures()


def get(site, path, **headers):
    connection = http.client.HTTPConnection(site.url.removeprefix("http://"), timeout=30)
    connection.request(headers.pop("method", "GET"), path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


# ---- the files


def test_the_page_is_served_under_a_strict_policy(site):
    for path in ("/", "/jobs/42", "/clusters/alpha"):
        answer, body = get(site, path)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';") and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-cache"
        assert not re.search(rb"<script>|<style|style=| on\w+=|https?://", body)
    tag = answer.headers["ETag"]
    answer, body = get(site, "/jobs", **{"If-None-Match": tag})
    assert (answer.status, body) == (304, b"")


def test_its_files_are_kept_for_good_and_come_compressed(site):
    _, page = get(site, "/")
    names = re.findall(r"/assets/[^\"]+", page.decode())
    assert {name.rpartition(".")[2] for name in names} == {"js", "css", "svg"}
    total = len(gzip.compress(page))
    for name in names:
        plain, text = get(site, name)
        assert plain.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        packed, body = get(site, name, **{"Accept-Encoding": "gzip, br"})
        assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(body) == text
        total += len(body)
    assert total <= 200_000
    assert get(site, "/assets/other.js")[0].status == 404
    assert get(site, "/", method="POST")[0].status == 405


def test_its_types_are_strict_and_eslint_finds_nothing():
    tree = BIN.parent / "web" / "tree"
    node = subprocess.run([REPOSITORY / "deploy" / "find-node"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    done = subprocess.run(["npm", "run", "--silent", "check"], cwd=tree, env={**os.environ, "PATH": f"{node}:{os.environ['PATH']}"},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_build_without_a_network_says_what_to_do(tmp_path):
    environment = {**os.environ, "npm_config_registry": "http://127.0.0.1:9", "npm_config_cache": str(tmp_path / "cache"), "npm_config_fetch_retries": "0"}
    done = subprocess.run([REPOSITORY / "clients" / "web" / "build-page", tmp_path / "web"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "npm could not fetch the packages" in done.stderr and "cmake -DMUSTER_WEB=OFF" in done.stderr


# ---- login


def test_a_token_logs_in_and_a_wrong_one_is_explained(site):
    page = site.open("/jobs", role=None)
    page.get_by_label("Token").fill("mst_wrong")
    page.get_by_role("button", name="Log in").click()
    assert page.get_by_role("alert").inner_text().strip()
    page.get_by_label("Token").fill(site.token("ada"))
    page.get_by_role("button", name="Log in").click()
    assert "ada" in page.locator(".me").inner_text()
    assert page.evaluate("localStorage.length") == 0
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token").wait_for()
    assert page.evaluate("sessionStorage.getItem('muster.token')") is None


def test_a_revoked_token_ends_the_session(world, broker, site):
    page = site.open("/jobs", role="VIEWER")
    page.get_by_text("There are no jobs yet").wait_for()
    world.cli("token", "revoke", "1")
    page.goto(f"{site.url}/jobs/1")
    page.get_by_label("Token").wait_for()


# ---- jobs


def test_the_list_follows_the_jobs(world, broker, agent, api, site):
    gate = world.gate()
    page = site.open("/jobs", role="ADMIN")
    page.get_by_text("There are no jobs yet").wait_for()
    job = api.submit(script_spec(gate.script(), name="train"))
    row(page, job).get_by_text("running").wait_for()
    gate.open()
    row(page, job).get_by_text("succeeded").wait_for()
    page.get_by_role("link", name="1 succeeded").wait_for()


def test_the_broker_evaluates_the_filter(agent, api, site):
    good, bad = api.submit(argv_spec("true", name="good")), api.submit(argv_spec("false", name="bad", retry={"max_runs": 1}))
    api.wait_state(good, SUCCEEDED)
    api.wait_state(bad, FAILED)
    page = site.open("/jobs", role="ADMIN")
    row(page, good).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("state = FAILED")
    page.keyboard.press("Enter")
    row(page, good).wait_for(state="detached")
    # The list is empty for a moment, until the broker has answered.
    row(page, bad).wait_for()
    assert row(page, bad).count() == 1 and "filter=" in page.url
    page.get_by_label("Filter", exact=True).fill("state = NONSENSE")
    page.keyboard.press("Enter")
    assert "NONSENSE" in page.get_by_role("alert").inner_text()


def test_the_keyboard_walks_through_the_list(api, site):
    first, second = api.submit(argv_spec("true", name="one")), api.submit(argv_spec("true", name="two"))
    page = site.open("/jobs", role="ADMIN")
    row(page, second).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=f"Job {first}").wait_for()


def test_many_jobs_are_a_few_rows_at_a_time(api, site):
    ids = api.submit_many([argv_spec("true", name=f"n{number}") for number in range(3000)])
    page = site.open("/jobs?order=id", role="ADMIN")
    row(page, ids[0]).wait_for()
    grid = page.get_by_role("table", name="Jobs")
    page.get_by_text("3,000 jobs").wait_for()

    def is_at_the_end():
        grid.evaluate("element => element.scrollTo(0, element.scrollHeight)")
        assert page.locator(".grid-body .row").count() < 100
        return row(page, ids[-1]).count() == 1
    eventually(is_at_the_end, "the last job is shown")


def test_jobs_are_canceled_by_filter_after_they_are_counted(api, site):
    ids = [api.submit(argv_spec("true", name="old")) for _ in range(3)] + [api.submit(argv_spec("true", name="new"))]
    page = site.open("/jobs?filter=name+%3D+old", role="ADMIN")
    row(page, ids[0]).wait_for()
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("This concerns 3 jobs.").wait_for()
    assert [api.get(job).state for job in ids].count(CANCELED) == 0
    dialog.get_by_label("Reason").fill("no longer needed")
    dialog.get_by_role("button", name="Cancel 3 jobs").click()
    dialog.get_by_text("3 jobs are asked to end.").wait_for()
    assert [api.get(job).state for job in ids].count(CANCELED) == 3
    page.keyboard.press("Escape")
    row(page, ids[0]).get_by_text("canceled").wait_for()
    page.goto(f"{site.url}/jobs/{ids[0]}")
    page.get_by_text("no longer needed").wait_for()


def test_selected_jobs_are_held_released_and_run_again(agent, api, site):
    done = api.submit(argv_spec("true", name="done"))
    api.wait_state(done, SUCCEEDED)
    waits = api.submit(argv_spec("true", name="waits"), held=True)
    page = site.open("/jobs", role="ADMIN")
    page.get_by_label(f"Select job {waits}", exact=True).check()
    page.get_by_role("button", name="Release").click()
    page.get_by_role("dialog").get_by_role("button", name="Release 1 job").click()
    page.get_by_text("1 job is released.").wait_for()
    page.get_by_role("button", name="Close").click()
    row(page, waits).get_by_text("succeeded").wait_for()
    page.get_by_label(f"Select job {done}", exact=True).check()
    page.get_by_role("button", name="Rerun").click()
    page.get_by_role("dialog").get_by_role("button", name="Rerun 1 job").click()
    page.get_by_text("1 job is submitted once more.").wait_for()
    page.get_by_role("button", name="Close").click()
    row(page, waits + 1).get_by_text("succeeded").wait_for()


def test_a_page_goes_on_after_the_broker_was_restarted(world, broker, browser, agent, api):
    site = Site(world, broker, browser)
    port = int(site.url.rpartition(":")[2])
    page = site.open("/jobs", role="ADMIN")
    page.get_by_text("There are no jobs yet").wait_for()
    world.write("broker.yaml", HTTP.format(port=port))
    broker.restart()
    job = world.api(broker).submit(argv_spec("true", name="later"))
    row(page, job).get_by_text("succeeded").wait_for()


# ---- one job


def test_a_failure_comes_first_with_its_line_and_its_remedy(agent, api, site):
    job = api.submit(script_spec("echo 'RuntimeError: CUDA out of memory. Tried to allocate 2 GiB' >&2; exit 3", name="tune", retry={"max_runs": 1}))
    failure = api.wait_state(job, FAILED).failure
    page = site.open(f"/jobs/{job}", role="ADMIN")
    note = page.locator(".note.bad")
    assert failure.message in note.inner_text() and failure.remedy in note.inner_text()
    assert note.locator("blockquote").first.inner_text() == failure.quotes[0].text
    assert "run 1 failed" in page.get_by_role("region", name="History").inner_text()
    spec = page.locator("pre.spec").inner_text()
    import yaml
    assert yaml.safe_load(spec)["command"]["script"] == api.get(job).spec.command.script


def test_a_job_that_waits_says_why(agent, api, site):
    spec = argv_spec("true", name="big")
    spec.placement.clusters.append("box")
    gone = api.submit(spec, held=True)
    page = site.open(f"/jobs/{gone}", role="ADMIN")
    assert api.get(gone).state_reason.message in page.locator(".note.warn").inner_text()
    page.get_by_role("button", name="Release").click()
    page.get_by_role("dialog").get_by_role("button", name="Release 1 job").click()
    page.get_by_text("1 job is released.").wait_for()
    page.get_by_role("button", name="Close").click()
    page.locator(".head").get_by_text("succeeded").wait_for()


def test_the_spec_is_a_job_file(world, agent, api, site):
    spec = script_spec("echo one\n\n  echo 'two: # 3'\n", name="yes", labels={"team": "vision", "n": "7", "empty": ""}, env={"A": "tab\there", "B": "- x"})
    job = api.submit(spec)
    page = site.open(f"/jobs/{job}", role="ADMIN")
    copied = world.write("copied.yaml", page.locator("pre.spec").inner_text())
    again = int(world.cli("submit", "-q", str(copied)).stdout)
    assert api.get(again).spec == api.get(job).spec


# ---- logs


def test_a_log_is_followed_in_colour_and_in_both_streams(world, agent, api, site):
    gate = world.gate()
    job = api.submit(script_spec(f"printf '\\033[32mgreen\\033[0m plain\\n'; echo fault >&2; {gate.script()}; echo the end", name="log"))
    api.wait_state(job, RUNNING)
    page = site.open(f"/jobs/{job}/log", role="ADMIN")
    assert page.locator(".line.stdout .fg2").inner_text() == "green"
    assert page.locator(".line.stderr .text").inner_text() == "fault"
    gate.open()
    page.get_by_text("the end").wait_for()
    page.get_by_label("Output").select_option("stderr")
    page.get_by_text("1 line", exact=True).wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.path().read_text() == "fault\n"


def test_a_link_leads_to_a_line_of_a_long_log(agent, api, site):
    job = api.submit(script_spec("seq 1 150000", name="long"))
    api.wait_state(job, SUCCEEDED)
    page = site.open(f"/jobs/{job}/log", role="ADMIN")
    page.get_by_text("150000", exact=True).wait_for()
    assert page.get_by_text("1,000 lines", exact=True).count() == 1
    offset = sum(len(f"{number}\n") for number in range(1, 70000))
    page.goto(f"{site.url}/jobs/{job}/log?line=stdout-{offset}")
    marked = page.locator(".line.marked .text")
    assert marked.inner_text() == "70000"
    assert marked.evaluate("e => { const r = e.getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; }")
    assert page.locator(".line").count() < 200


# ---- clusters, use, admin


def test_a_cluster_is_checked_cordoned_and_uncordoned(agent, api, site):
    page = site.open("/clusters", role="ADMIN")
    page.get_by_role("link", name="box").click()
    page.get_by_role("region", name=re.compile("^Nodes")).locator(".map .node").wait_for()
    page.get_by_role("button", name="Check the cluster").click()
    page.get_by_role("region", name="Checks").locator("tbody tr").first.wait_for()
    page.get_by_role("button", name="Cordon").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("new disks")
    page.get_by_role("dialog").get_by_role("button", name="Cordon").click()
    page.get_by_text("new disks").wait_for()
    assert api.cluster("box").cordon.reason == "new disks"
    page.get_by_role("button", name="Uncordon").click()
    page.get_by_text("new disks").wait_for(state="detached")
    assert not api.cluster("box").HasField("cordon")


def test_use_is_told_by_project_and_user(agent, api, site):
    api.wait_state(api.submit(argv_spec("true", name="used")), SUCCEEDED)
    page = site.open("/use", role="ADMIN")
    assert "default" in page.get_by_role("region", name="By project").inner_text()
    page.get_by_label("By", exact=True).select_option("user")
    assert api.get(1).user in page.get_by_role("region", name="By user").inner_text()
    assert "default" in page.get_by_role("region", name="Shares of projects").inner_text()


def test_tokens_are_made_and_revoked(world, broker, site):
    page = site.open("/admin", role="ADMIN", user="root")
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("laptop")
    dialog.get_by_role("button", name="Make the token").click()
    secret = dialog.locator(".secret").inner_text()
    assert secret.startswith("mst_") and get(site, "/metrics", Authorization=f"Bearer {secret}")[0].status != 401
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Revoke token laptop of root").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke token laptop of root").wait_for(state="detached")
    assert get(site, "/metrics", Authorization=f"Bearer {secret}")[0].status == 401


def test_members_come_and_go_and_the_audit_log_tells(world, broker, site):
    world.cli("project", "create", "vision")
    page = site.open("/admin/projects", role="ADMIN")
    page.get_by_role("button", name="Members of vision").click()
    page.get_by_label("Name").fill("bob")
    page.get_by_role("button", name="Set the member").click()
    page.get_by_role("button", name="Remove bob").click()
    page.get_by_role("button", name="Remove bob").wait_for(state="detached")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Audit").click()
    page.get_by_role("cell", name="ProjectsService.RemoveMember").wait_for()


def test_a_submitter_sees_their_own_and_an_error_of_rights_is_told(agent, api, site):
    job = api.submit(argv_spec("true", name="of-root"))
    page = site.open("/admin", role="SUBMITTER", user="ada")
    page.get_by_role("button", name="New token").wait_for()
    assert page.get_by_role("link", name="Audit").count() == 0
    page.goto(f"{site.url}/jobs/{job}")
    assert str(job) in page.get_by_role("alert").inner_text()
    page.goto(f"{site.url}/clusters/box")
    page.get_by_role("button", name="Cordon").click()
    page.get_by_role("dialog").get_by_role("button", name="Cordon").click()
    page.get_by_role("dialog").get_by_role("alert").wait_for()


# ---- hostile words, and people with other senses


def test_hostile_words_stay_words(agent, api, site):
    jobs = []
    for text in HOSTILE:
        spec = argv_spec("printf", "%s\n%s\n", text, f"\x1b]0;{text}\x07\x1b[31m{text}", labels={"x": "y"}, env={"HOSTILE": text})
        spec.name = text if text.isprintable() else "odd"
        jobs.append(api.submit(spec))
    for job in jobs:
        api.wait_state(job, SUCCEEDED)
    page = site.open("/jobs", role="ADMIN")
    row(page, jobs[0]).wait_for()
    for job, text in zip(jobs, HOSTILE):
        page.goto(f"{site.url}/jobs/{job}/log")
        page.locator(".line .fg1").first.wait_for()
        assert page.locator(".line .text").first.inner_text() == text
        page.goto(f"{site.url}/jobs/{job}")
        page.locator("pre.spec").wait_for()
        assert page.evaluate("window.hurt") is None
        assert page.locator("main img, main iframe, main script, main style").count() == 0
    page.goto(f"{site.url}/clusters/%3Cimg%20src=x%20onerror=window.hurt=1%3E?x=%22%3E%3Cscript%3E")
    page.get_by_role("alert").wait_for()
    assert page.evaluate("window.hurt") is None


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_wrong(look, agent, api, site):
    failed = api.submit(script_spec("echo 'RuntimeError: CUDA out of memory' >&2; exit 3", name="tune", labels={"team": "vision"}, retry={"max_runs": 1}))
    api.wait_state(failed, FAILED)
    held = api.submit(argv_spec("true", name="held"), held=True)
    views = {"/jobs": ".row a.job", f"/jobs/{failed}": ".facts", f"/jobs/{held}": ".note.warn", f"/jobs/{failed}/log": ".line", "/clusters": "tbody tr",
             "/clusters/box": ".map", "/use": ".days", "/admin": "tbody tr", "/admin/projects": "tbody tr", "/admin/audit": "tbody tr"}
    page = site.open("/", role="ADMIN", **LOOKS[look])
    for path, sign in views.items():
        page.goto(site.url + path)
        page.locator(sign).first.wait_for()
        assert violations(page) == "", path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is too wide"
    page.goto(f"{site.url}/jobs")
    page.locator("a.job").first.wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("This concerns").wait_for()
    assert violations(page) == "", "the dialog"
    page.goto(f"{site.url}/jobs/x")
    page.get_by_role("heading", name="There is no such page").wait_for()
    assert violations(page) == "", "no such page"
    other = site.open("/", role=None, **LOOKS[look])
    other.get_by_label("Token").wait_for()
    assert violations(other) == "", "login"

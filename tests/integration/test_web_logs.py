"""The web page's logs of several ranks and outputs side by side."""

import pytest

from harness.api import RUNNING, SUCCEEDED, script_spec
from harness.fixtures import hosts_agent_fixture, hosts_fixture
from harness.wait import eventually
from harness.web import LOOKS, is_in_sight, violations, web_fixtures

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("web")]

chromium, browser, broker, site = web_fixtures()
cluster = hosts_fixture()
agent = hosts_agent_fixture()


def column(page, number):
    return page.get_by_role("region", name=f"Column {number}")


def line(page, number, text):
    return column(page, number).get_by_text(text, exact=True)


def is_at_its_end(page, number):
    return column(page, number).get_by_role("log").evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight < 18")


def many(text):
    """Two ranks, each with a long output of its own, and an end of each that waits for the gate."""
    return script_spec(f"seq -f \"$NODE_RANK-%g\" 1 3000; echo \"fault $NODE_RANK\" >&2; {text}; seq 1 200; echo \"end $NODE_RANK\"", nodes=2, name="two")


def test_ranks_stand_side_by_side_and_follow_together(world, agent, api, site):
    gate = world.gate()
    job = api.submit(many(gate.script()))
    api.wait_state(job, RUNNING)
    page = site.open(f"/jobs/{job}/log", role="ADMIN")
    page.get_by_label("Rank").wait_for()
    page.get_by_role("link", name="Side by side").click()
    line(page, 1, "0-3000").wait_for()
    line(page, 2, "1-3000").wait_for()
    assert page.url.endswith("columns=0%2C1")
    # Who goes up in one stops all of them.
    first = column(page, 1).get_by_role("log")
    first.hover()
    page.mouse.wheel(0, -3000)
    column(page, 2).get_by_role("button", name="Follow").wait_for()
    gate.open()
    api.wait_state(job, SUCCEEDED)
    column(page, 2).get_by_role("button", name="Follow").wait_for(state="detached")
    assert not is_at_its_end(page, 1) and not is_at_its_end(page, 2)
    first.press("End")
    eventually(lambda: is_at_its_end(page, 1) and is_at_its_end(page, 2), "both show their ends")
    assert is_in_sight(line(page, 1, "end 0")) and is_in_sight(line(page, 2, "end 1"))


def test_each_column_has_its_rank_and_its_output(world, agent, api, site):
    job = api.submit(many("true"))
    api.wait_state(job, SUCCEEDED)
    page = site.open(f"/jobs/{job}/log?columns=0,1-stderr", role="ADMIN")
    line(page, 1, "end 0").wait_for()
    line(page, 2, "fault 1").wait_for()
    column(page, 2).get_by_text("1 line", exact=True).wait_for()
    page.get_by_label("Rank of column 2").select_option("0")
    line(page, 2, "fault 0").wait_for()
    page.get_by_label("Output of column 1").select_option("stderr")
    line(page, 1, "fault 0").wait_for()
    page.get_by_label("Rank of column 1").select_option("1")
    line(page, 1, "fault 1").wait_for()
    page.get_by_role("button", name="Add a column").click()
    page.get_by_role("button", name="Add a column").wait_for(state="detached")
    line(page, 3, "end 0").wait_for()
    page.get_by_role("button", name="Remove column 3").click()
    column(page, 3).wait_for(state="detached")
    assert "columns=1-stderr%2C0-stderr&" in page.url + "&"
    page.get_by_role("link", name="One log").click()
    page.get_by_label("Output").wait_for()


def test_a_link_leads_to_a_line_of_one_column(agent, api, site):
    job = api.submit(many("true"))
    api.wait_state(job, SUCCEEDED)
    page = site.open(f"/jobs/{job}/log?columns=0-stdout,1-stdout&tail=10000", role="ADMIN")
    line(page, 2, "end 1").wait_for()
    log = column(page, 2).get_by_role("log")
    log.evaluate("element => element.scrollTo(0, 18 * 1000)")
    column(page, 2).locator(".line", has=page.get_by_text("1-1010", exact=True)).get_by_label("Link to this line of stdout").click()
    assert "line=1%3Astdout-" in page.url
    other = site.open(page.url.removeprefix(site.url), role="ADMIN")
    marked = other.locator(".line.marked .text")
    assert marked.inner_text() == "1-1010" and is_in_sight(marked)
    assert column(other, 2).locator(".line.marked").count() == 1


def test_what_is_no_column_is_left_out(agent, api, site):
    job = api.submit(many("true"))
    api.wait_state(job, SUCCEEDED)
    page = site.open(f"/jobs/{job}/log?columns=x,0,-1,1-both,9,0,0,0,0", role="ADMIN")
    line(page, 1, "end 0").wait_for()
    column(page, 2).get_by_role("alert").wait_for()
    assert page.get_by_role("log").count() == 3


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_wrong_with_columns(look, agent, api, site):
    job = api.submit(many("true"))
    api.wait_state(job, SUCCEEDED)
    page = site.open(f"/jobs/{job}/log?columns=0,1", role="ADMIN", **LOOKS[look])
    line(page, 2, "end 1").wait_for()
    assert violations(page) == ""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

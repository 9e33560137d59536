"""The filter of the web page's list: completion, saved views, and arrays as one row."""

import re

import pytest

from harness.api import CANCELED, SUCCEEDED, argv_spec
from harness.wait import eventually
from harness.web import LOOKS, is_in_sight, row, violations, web_fixtures

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("web")]

chromium, browser, broker, site = web_fixtures()

ARRAY = "#!/bin/sh\n#SBATCH --job-name=sweep\ntrue\n"


def box(page):
    return page.get_by_role("combobox", name="Filter")


def option(page, **options):
    return page.get_by_role("listbox", name="Completions").get_by_role("option", **options)


def offers(page):
    return option(page).all_inner_texts()


def write(page, text):
    """Types a whole filter, and waits for what is offered behind it."""
    box(page).fill("")
    box(page).press_sequentially(text)
    option(page).first.wait_for()
    return offers(page)


def array(world, count):
    """Submits an array that no cluster takes. Returns the number of its first task."""
    path = world.write("array.sh", ARRAY)
    return int(world.cli("sbatch", "--parsable", "--hold", "--chdir=/", f"--array=0-{count - 1}", path).stdout)


# ---- completion


def test_fields_operators_and_values_are_completed_by_the_keyboard(api, site):
    job, _ = api.submit(argv_spec("true", name="one")), api.submit(argv_spec("true", name="two"))
    page = site.open("/jobs", role="ADMIN")
    row(page, job).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("na")
    option(page, name="name", exact=True).wait_for()
    assert box(page).get_attribute("aria-expanded") == "true" and box(page).get_attribute("aria-activedescendant") is None
    page.keyboard.press("ArrowDown")
    chosen = option(page, selected=True)
    assert chosen.inner_text() == "name" and box(page).get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.keyboard.press("Enter")
    assert box(page).input_value() == "name " and offers(page) == ["=", "!="]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert sorted(offers(page)) == ["one", "two"]
    page.keyboard.type("o")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert box(page).input_value() == "name = one " and offers(page) == ["AND", "OR"]
    page.keyboard.press("Escape")
    assert box(page).get_attribute("aria-expanded") == "false"
    page.keyboard.press("Enter")
    row(page, job + 1).wait_for(state="detached")
    row(page, job).wait_for()
    assert "filter=name+%3D+one" in page.url


def test_enter_without_a_choice_takes_the_filter_as_it_is(api, site):
    job = api.submit(argv_spec("true", name="one"))
    page = site.open("/jobs", role="ADMIN")
    row(page, job).wait_for()
    write(page, "id > 5 AND stat")
    page.keyboard.press("Enter")
    page.get_by_role("alert").wait_for()
    assert box(page).input_value() == "id > 5 AND stat" and box(page).get_attribute("aria-expanded") == "false"


def test_values_are_those_that_the_broker_has(world, broker, agent, api, site):
    world.cli("project", "create", "vision")
    job = api.submit(argv_spec("true", name="has blank", project="vision", labels={"team": "a (b)", "kind": "x"}))
    api.wait_state(job, SUCCEEDED)
    user = api.get(job).user
    page = site.open("/jobs", role="ADMIN")
    row(page, job).wait_for()
    for text, value in (("project = v", "vision"), ("user = ", user), ("cluster = ", "box"), ("label.", "label.kind"), ("label.team = ", '"a (b)"'),
                        ('name = "has', '"has blank"'), ("(state = RUN", "RUNNING"), ("held = t", "true"), ("cluster_kind = M", "MACHINES")):
        box(page).fill("")
        box(page).press_sequentially(text)
        option(page, name=value, exact=True).click()
        assert box(page).input_value() == re.sub(r'("has|\S*)$', "", text) + value + " "
    assert write(page, "exit_code") == ["exit_code =", "exit_code !=", "exit_code >", "exit_code >=", "exit_code <", "exit_code <=", "exit_code:*"]


def test_what_is_completed_within_a_filter_leaves_its_rest(api, site):
    job = api.submit(argv_spec("true", name="one"))
    page = site.open("/jobs", role="ADMIN")
    row(page, job).wait_for()
    box(page).fill("sta AND id > 0")
    box(page).evaluate("e => e.setSelectionRange(3, 3)")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert box(page).input_value() == "state AND id > 0"
    assert box(page).evaluate("e => e.selectionStart") == len("state ")


# ---- saved views


def test_a_view_is_saved_renamed_deleted_and_sent_as_a_link(api, site):
    one, two = api.submit(argv_spec("true", name="one")), api.submit(argv_spec("true", name="two"))
    page = site.open("/jobs?filter=name+%3D+one&order=id", role="ADMIN")
    row(page, one).wait_for()
    page.get_by_role("button", name="Views").click()
    dialog = page.get_by_role("dialog", name="Saved views")
    dialog.get_by_label("Name", exact=True).fill("mine")
    page.keyboard.press("Enter")
    dialog.get_by_label("Name of view mine").fill("ours")
    dialog.get_by_role("button", name="Rename view mine").click()
    dialog.get_by_label("Name of view ours").wait_for()
    page.keyboard.press("Escape")
    page.goto(f"{site.url}/jobs")
    row(page, two).wait_for()
    page.get_by_role("navigation", name="Saved views").get_by_role("link", name="ours").click()
    row(page, two).wait_for(state="detached")
    row(page, one).wait_for()
    assert page.get_by_role("link", name="ours").get_attribute("aria-current") == "page"
    # Another person opens the link, and has no such view.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(site.url)
    other = site.open(link.removeprefix(site.url), role="ADMIN")
    row(other, one).wait_for()
    assert row(other, two).count() == 0 and other.get_by_role("link", name="ours").count() == 0
    page.get_by_role("button", name="Views").click()
    dialog.get_by_role("button", name="Delete view ours").click()
    dialog.get_by_label("Name of view ours").wait_for(state="detached")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="ours").wait_for(state="detached")


def test_two_views_never_have_one_name_and_what_else_is_stored_does_no_harm(api, site):
    api.submit(argv_spec("true", name="one"))
    page = site.open("/jobs?filter=id+%3E+0", role="ADMIN")
    page.evaluate("""localStorage.setItem('muster.views', JSON.stringify(
        [{name: 'a', filter: 'id = 1', order: ''}, {name: 'b', filter: '', order: ''}, {name: 7}, null]))""")
    page.reload()
    page.get_by_role("link", name="a", exact=True).wait_for()
    page.get_by_role("button", name="Views").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("listitem").count() == 2
    dialog.get_by_label("Name of view a").fill("b")
    dialog.get_by_role("button", name="Rename view a").click()
    assert 'Another view is called "b"' in dialog.get_by_role("alert").inner_text()
    dialog.get_by_label("Name", exact=True).fill("a")
    dialog.get_by_role("button", name="Save this view").click()
    dialog.get_by_text("id > 0").nth(1).wait_for()
    assert dialog.get_by_role("listitem").count() == 2
    page.evaluate("localStorage.setItem('muster.views', '{')")
    page.reload()
    page.get_by_role("button", name="Views").wait_for()
    assert page.get_by_role("navigation", name="Saved views").get_by_role("link").count() == 0


# ---- arrays


def test_an_array_is_one_row_with_its_progress_and_its_tasks_below(world, api, site):
    before = api.submit(argv_spec("true", name="before"), held=True)
    first = array(world, 300)
    later = api.submit(argv_spec("true", name="later"), held=True)
    page = site.open("/jobs", role="ADMIN")
    row(page, before).wait_for()
    rows = page.locator(".grid-body .row")
    assert [text.split("\n")[0] for text in rows.locator("a.job").all_inner_texts()] == [str(later), f"{first}_*", str(before)]
    page.get_by_role("img", name=f"Progress of array {first}: 300 queued").wait_for()
    turn = page.get_by_role("button", name=f"Tasks of array {first}")
    turn.press("Enter")
    row(page, first + 5).wait_for()
    assert turn.get_attribute("aria-expanded") == "true"
    for place in range(30):
        world.cli("cancel", str(first + place))
    page.get_by_role("img", name=f"Progress of array {first}: 270 queued, 30 canceled").wait_for()
    row(page, first).get_by_text("canceled").wait_for()
    assert rows.nth(1).locator(".c-state").inner_text().strip() == "30/300"
    turn.press("Enter")
    row(page, first + 5).wait_for(state="detached")
    page.get_by_role("link", name=f"{first}_*").click()
    row(page, first + 20).wait_for()
    assert row(page, later).count() == 0 and page.get_by_role("button", name=f"Tasks of array {first}").count() == 0
    page.get_by_text("300 jobs").wait_for()
    page.get_by_label("Arrays").select_option("")
    page.get_by_role("link", name=f"{first}_*").wait_for()


def test_arrays_that_come_while_the_list_is_open_are_one_row_each(world, api, site):
    page = site.open("/jobs", role="ADMIN")
    page.get_by_text("There are no jobs yet").wait_for()
    single = api.submit(argv_spec("true", name="single"), held=True)
    row(page, single).wait_for()
    first = array(world, 250)
    page.get_by_role("img", name=f"Progress of array {first}: 250 queued").wait_for()
    second = array(world, 2)
    page.get_by_role("img", name=f"Progress of array {second}: 2 queued").wait_for()
    assert page.locator(".grid-body .row").count() == 3


def test_a_large_array_that_comes_leaves_the_loaded_list_in_place(world, api, site):
    jobs = api.submit_many([argv_spec("true", name="old")] * 450)
    page = site.open("/jobs", role="ADMIN")
    row(page, jobs[-1]).wait_for()
    grid = page.get_by_role("table", name="Jobs")

    def height():
        return int(grid.evaluate("element => element.scrollHeight"))

    def is_at_the_end():
        grid.evaluate("element => element.scrollTo(0, element.scrollHeight)")
        return row(page, jobs[0]).count() == 1
    eventually(is_at_the_end, "all jobs are loaded")
    before = height()
    grid.evaluate("element => element.scrollTo(0, 30 * 300)")
    seen = row(page, jobs[-310])
    seen.wait_for()
    array(world, 450)
    eventually(lambda: height() != before, "the list has changed")
    assert height() == before + 30
    eventually(lambda: grid.evaluate("element => element.scrollTop") == 30 * 301, "the rows stay where they were")
    assert is_in_sight(seen)


def test_the_filter_decides_which_tasks_of_an_array_count(world, api, site):
    first = array(world, 5)
    world.cli("cancel", str(first + 1))
    api.wait_state(first + 1, CANCELED)
    page = site.open("/jobs?filter=state+%3D+CANCELED", role="ADMIN")
    page.get_by_role("img", name=f"Progress of array {first}: 1 canceled").wait_for()
    page.get_by_role("button", name=f"Tasks of array {first}").click()
    row(page, first + 1).wait_for()
    assert row(page, first).count() == 0


def test_many_arrays_are_scrolled_through_in_both_orders(world, api, site):
    firsts = [array(world, 210) for _ in range(45)]
    for order, top, end in (("", firsts[-1], firsts[0]), ("id", firsts[0], firsts[-1])):
        page = site.open(f"/jobs?order={order}", role="ADMIN")
        page.get_by_role("link", name=f"{top}_*", exact=True).wait_for()
        grid = page.get_by_role("table", name="Jobs")

        def is_at_the_end():
            grid.evaluate("element => element.scrollTo(0, element.scrollHeight)")
            return page.get_by_role("link", name=f"{end}_*", exact=True).count() == 1
        eventually(is_at_the_end, "the last array is shown")
        assert int(grid.evaluate("element => element.scrollHeight")) < 50 * 30


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_wrong_with_completions_views_and_arrays(look, world, api, site):
    first = array(world, 120)
    page = site.open("/jobs?filter=id+%3E+0", role="ADMIN", **LOOKS[look])
    page.get_by_role("button", name=f"Tasks of array {first}").click()
    row(page, first + 1).wait_for()
    assert violations(page) == "", "an array"
    write(page, "cluster")
    page.keyboard.press("ArrowDown")
    assert violations(page) == "", "completions"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("dialog").get_by_label("Name", exact=True).fill("mine")
    page.keyboard.press("Enter")
    page.get_by_label("Name of view mine").wait_for()
    assert violations(page) == "", "views"

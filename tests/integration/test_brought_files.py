"""Files that jobs bring along, from the broker to where a run starts, on plain machines."""

import os
import shutil

import pytest

from harness.api import CANCELED, FAILED, SUCCEEDED, script_spec
from harness.files import bring, sha256
from harness.relay import StallingRelay
from harness.wait import eventually

CODE = {b"train.sh": b"#!/bin/sh\ncat data/in; echo more >>data/in\n", b"data/in": b"1,2,3\n", b"empty": b""}
WHOLE = b"x" * (64 << 20)


def brought(api, text, files=None, **fields):
    return bring(api, script_spec(text, **fields), files or CODE, executable=[b"train.sh"])


def cache(agent):
    return agent.state_dir / "files"


def test_a_job_starts_among_its_files(api, agent):
    spec = brought(api, "./train.sh; test ! -x data/in; ls")
    bring(api, spec, {b"a": b"mounted\n"}, path="mnt/here")
    job_id = api.submit(spec)
    job = api.wait_state(job_id, SUCCEEDED)
    assert job.state == SUCCEEDED
    assert api.stdout(job_id) == b"1,2,3\ndata\nempty\nmnt\nresults\ntrain.sh\n"


def test_runs_of_the_same_files_do_not_disturb_each_other_and_fetch_once(api, agent, broker):
    first = api.submit(brought(api, "./train.sh"))
    api.wait_state(first, SUCCEEDED)
    # Nobody can fetch files that the broker no longer has.
    shutil.rmtree(broker.state_dir / "files" / "kept")
    (broker.state_dir / "files" / "kept").mkdir()
    spec = api.get(first).spec
    uploads = [(upload.tree_sha256, upload.path) for upload in spec.uploads]
    kept = {path.name for path in (cache(agent) / "kept").iterdir()}
    assert {sha256(content) for content in CODE.values()} | {uploads[0][0]} == kept
    second = api.submit(brought(api, "./train.sh"))
    api.wait_state(second, SUCCEEDED)
    assert api.stdout(first) == api.stdout(second) == b"1,2,3\n"


def test_files_that_the_broker_has_lost_end_the_job_with_the_remedy(api, world, broker):
    agent = world.make_agent()
    agent.start()
    agent.kill()
    job_id = api.submit(brought(api, "true"))
    (broker.state_dir / "files" / "kept" / sha256(CODE[b"data/in"])).unlink()
    agent.start()
    job = api.wait_state(job_id, FAILED)
    failure = job.runs[-1].failure if job.runs else job.failure
    assert "Submit the job again" in failure.remedy
    assert len(job.runs) <= 1


@pytest.fixture
def stalling(world, broker, request):
    """Returns a relay between the broker and an agent that stops a fetch after so many bytes, and that agent."""
    relay = StallingRelay(broker, world.path("relay.sock"), request.param)
    agent = world.make_agent()
    agent.argv[agent.argv.index("--broker") + 1] = relay.address
    yield relay, agent.start()
    relay.close()


def await_half(agent):
    """Waits until the agent has fetched a part of the whole, and gets no more."""
    part = cache(agent) / "incoming" / sha256(WHOLE)
    eventually(lambda: part.exists() and part.stat().st_size > 0, "fetching has begun")
    assert part.stat().st_size < len(WHOLE) and not (cache(agent) / "kept" / sha256(WHOLE)).exists()


@pytest.mark.parametrize("stalling", [1 << 20, 40 << 20], indirect=True)
def test_an_agent_that_is_killed_while_it_fetches_runs_the_job_once(api, stalling, world):
    relay, agent = stalling
    count = world.path("count")
    job_id = api.submit(brought(api, f"echo run >>{count}; wc -c <whole", {b"whole": WHOLE}))
    await_half(agent)
    agent.kill()
    relay.open()
    agent.start()
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id).split() == [str(len(WHOLE)).encode()]
    assert count.read_text() == "run\n"
    assert not list((agent.state_dir / "layouts").iterdir())


@pytest.mark.parametrize("stalling", [40 << 20], indirect=True)
def test_a_broker_that_goes_away_meanwhile_costs_time_only(api, stalling, broker, world):
    relay, agent = stalling
    count = world.path("count")
    job_id = api.submit(brought(api, f"echo run >>{count}; wc -c <whole", {b"whole": WHOLE}))
    await_half(agent)
    broker.kill()
    relay.open()
    broker.start()
    api.wait_state(job_id, SUCCEEDED)
    assert count.read_text() == "run\n"


def hang(agent, content):
    """Makes whoever fetches that file there wait, until the path is removed and the agent started anew."""
    path = cache(agent) / "incoming" / sha256(content)
    os.mkfifo(path)
    return path


def waits_because(api, job_id, words):
    eventually(lambda: words in api.get(job_id).state_reason.message, f"the job says: {words}")


def test_an_agent_that_is_killed_while_files_come_holds_up_nobody_and_runs_the_job_once(api, agent, world):
    count = world.path("count")
    path = hang(agent, CODE[b"data/in"])
    job_id = api.submit(brought(api, f"echo run >>{count}; ./train.sh"))
    waits_because(api, job_id, "its files are being fetched")
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    agent.kill()
    path.unlink()
    agent.start()
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"1,2,3\n"
    assert count.read_text() == "run\n"


def test_a_cancel_does_not_wait_for_files_that_do_not_come(api, agent):
    path = hang(agent, CODE[b"data/in"])
    job_id = api.submit(brought(api, "true"))
    waits_because(api, job_id, "its files are being fetched")
    api.cancel(job_id)
    api.wait_state(job_id, CANCELED)
    agent.kill()  # it waits for the file as well
    path.unlink()


def test_a_run_waits_for_room_for_its_files_says_so_and_holds_up_nobody(api, world, broker):
    agent = world.make_agent(config=world.machines_config() + "files:\n  keep_free_bytes: 900Ti\n")
    agent.start()
    job_id = api.submit(brought(api, "true"))
    waits_because(api, job_id, "No space left on device")
    api.wait_state(api.submit(script_spec("true")), SUCCEEDED)
    api.cancel(job_id)
    api.wait_state(job_id, CANCELED)
    assert len(api.get(job_id).runs) == 1

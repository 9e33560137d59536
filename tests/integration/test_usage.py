"""The usage of runs on plain machines, as their supervisors have counted it."""

from harness.api import CANCELED, FAILED, SUCCEEDED, argv_spec, script_spec
from harness.wait import eventually

# A process of 80 MB that computes for half a second, and one that outlives its parent.
BURN = """(python3 -c '
import time
while time.process_time() < 0.3: pass' &)
python3 -c '
import time
x = bytearray(80 << 20)
for i in range(0, len(x), 4096): x[i] = 1
while time.process_time() < 0.5: pass'
"""


def cpu_of(run):
    return run.usage.user_cpu_time.ToNanoseconds() + run.usage.system_cpu_time.ToNanoseconds()


def test_what_a_run_used_is_told_with_its_end(world, api, agent):
    job_id = api.submit(script_spec(BURN + "sleep 0.5"))
    run = api.wait_state(job_id, SUCCEEDED).runs[0]
    assert run.HasField("usage")
    assert cpu_of(run) >= 800_000_000
    assert run.usage.max_rss_bytes >= 80 << 20
    shown = world.cli("sacct", "-nP", "-j", job_id, "-o", "TotalCPU,MaxRSS,UserCPU,SystemCPU").stdout
    assert shown.split("|")[0].startswith("00:0") and shown.split("|")[1][-1] in "KM"
    assert "of processor time (user" in world.cli("show", job_id).stdout
    as_json = world.cli_json("show", job_id)["runs"][0]["usage"]
    assert int(as_json["max_rss_bytes"]) == run.usage.max_rss_bytes


def test_failed_and_canceled_runs_have_used_something_too(api, agent):
    failed = api.wait_state(api.submit(script_spec(BURN + "exit 3")), FAILED).runs[0]
    assert cpu_of(failed) >= 500_000_000
    job_id = api.submit(argv_spec("sleep", "1000"))
    eventually(lambda: api.get(job_id).runs and api.get(job_id).runs[0].HasField("start_time"), "its start")
    api.cancel(job_id)
    assert api.wait_state(job_id, CANCELED).runs[0].HasField("usage")


def test_a_run_that_never_began_has_used_nothing(api, agent):
    assert not api.wait_state(api.submit(argv_spec("/nonexistent")), FAILED).runs[0].HasField("usage")


def test_an_agent_that_was_away_at_the_end_tells_it_all_the_same(world, api, agent):
    gate = world.gate()
    job_id = api.submit(script_spec(gate.script() + "\n" + BURN))
    eventually(lambda: api.get(job_id).runs and api.get(job_id).runs[0].HasField("start_time"), "its start")
    agent.kill()
    gate.open()
    agent.start()
    assert cpu_of(api.wait_state(job_id, SUCCEEDED).runs[0]) >= 500_000_000

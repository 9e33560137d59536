"""The use of projects, told by `muster usage`, with real processes."""

import json

from harness.api import script_spec


def usage(world, *args):
    return json.loads(world.cli("usage", *args, "-o", "json").stdout)


def run_to_end(world, project):
    api = world.api(world.broker)
    job = api.submit(script_spec("exit 0", project=project, nodes=1))
    api.wait_end(job)
    return job


def test_usage_counts_each_ended_run_and_outlives_the_broker(world, broker):
    world.make_agent(config="max_active_runs: 2\n" + world.machines_config(cpus=4)).start()
    for project in ("vision", "vision", "speech"):
        run_to_end(world, project)
    before = usage(world, "--by", "project,cluster")
    assert {row["project"]: int(row["runs"]) for row in before["rows"]} == {"vision": 2, "speech": 1}
    assert int(before["total"]["runs"]) == 3
    assert len({row["cluster"] for row in before["rows"]}) == 1
    broker.kill()
    broker.start()
    assert usage(world, "--by", "project,cluster") == before
    table = world.cli("usage").stdout.splitlines()
    assert table[0].split() == ["PROJECT", "RUNS", "RUN-HOURS", "CORE-HOURS", "GPU-HOURS"]
    assert [line.split()[0] for line in table[1:]][-1] == "total"


def test_usage_names_what_it_does_not_take(world, broker):
    del broker
    refused = world.cli("usage", "--by", "node", check=False)
    assert refused.returncode == 2
    assert "use project, user, cluster or day" in refused.stderr

"""The agent dies just before each of the things that it does outside itself."""

import fcntl

from harness.daemons import BIN
from harness.wait import eventually
from muster.v1 import job_pb2

from faults.lab import open_kubernetes_lab, open_lab

LIBRARY = BIN / "muster_test_die.so"
# No life of a job has as many.
MOST_EFFECTS = 400
TERMINAL_RUNS = (job_pb2.RUN_STATE_SUCCEEDED, job_pb2.RUN_STATE_FAILED, job_pb2.RUN_STATE_CANCELED)


def agent_killed_at_every_side_effect(repeat, toll):
    """The agent dies at the first, second, ... file, sync, rename or command of a job's life."""
    with open_lab(make_agent=_make_mortal_agent) as lab:
        _strike_all(lab, repeat, toll)


def kubernetes_agent_killed_at_every_side_effect(repeat, toll):
    """The agent dies at the first, second, ... file, sync, rename or request of a job's life on Kubernetes."""
    with open_kubernetes_lab(make_agent=_make_mortal_agent) as lab:
        _strike_all(lab, repeat, toll)


def _strike_all(lab, repeat, toll):
    effects = _count_effects(lab)
    number = 0
    # Lives differ by a few effects, so a late strike may miss.
    while toll.strikes < repeat and number < 2 * repeat:
        # Evenly over the life, and each number once if there are as many repetitions as effects.
        at = 1 + number % repeat * effects // repeat if repeat < effects else 1 + number % effects
        _strike(lab, at, toll)
        number += 1


def _make_mortal_agent(cluster, world, **settings):
    agent = cluster.make_agent(world, **settings)
    agent.fuse = agent.state_dir / "fuse"
    agent.env = {**agent.env, "LD_PRELOAD": str(LIBRARY), "MUSTER_TEST_FUSE": str(agent.fuse)}
    return agent


def _light(lab, at):
    """From now on the agent has so many effects to live."""
    _count_file(lab).unlink(missing_ok=True)
    fuse = lab.agent.fuse.with_suffix(".new")
    fuse.write_text(str(at))
    fuse.rename(lab.agent.fuse)


def _put_out(lab):
    """How many effects the agent had since. If they were all that it had, it is dead or dies now; otherwise it lives on."""
    with open(lab.agent.fuse, encoding="ascii") as fuse:
        # It holds this lock while it counts, and until it has killed itself.
        fcntl.flock(fuse, fcntl.LOCK_EX)
        lab.agent.fuse.unlink()
        counted = _count_file(lab)
        return int(counted.read_text()) if counted.exists() else 0


def _count_file(lab):
    return lab.agent.fuse.with_suffix(".count")


def _count_effects(lab):
    """How many effects the agent has in the life of one job."""
    _light(lab, MOST_EFFECTS)
    jobs = lab.submit()
    eventually(lambda: _is_over(lab, jobs[0]), "its life is over")
    effects = _put_out(lab)
    assert 10 < effects < MOST_EFFECTS, effects
    return effects


def _strike(lab, at, toll):
    _light(lab, at)
    jobs = lab.submit()
    eventually(lambda: lab.agent.process.poll() is not None or _is_over(lab, jobs[0]), f"it dies at effect {at}")
    if _put_out(lab) >= at:
        toll.strikes += 1
        lab.agent.wait_exit()
        lab.agent.start()
    toll.audit(lab, jobs)


def _is_over(lab, job_id):
    """Also the agent's work on it: it has cleaned up."""
    job = lab.api.get(job_id)
    has_ended = bool(job.runs) and job.runs[-1].state in TERMINAL_RUNS and job.runs[-1].logs_complete
    return has_ended and not lab.left()

"""The agent dies just before each of the things that it does outside itself."""

import contextlib
import fcntl
import signal

from harness.daemons import BIN
from harness.wait import eventually

from faults.lab import open_kubernetes_lab, open_lab
from faults.lives import EVERYWHERE, ON_KUBERNETES

LIBRARY = BIN / "muster_test_die.so"
# No life of a job has as many.
MOST_EFFECTS = 400
# Some lives are shorter than the one that was counted, and a late strike misses them.
TRIES_PER_STRIKE = 2


def agent_killed_at_every_side_effect(repeat, toll):
    """The agent dies at the first, second, ... file, sync, rename or command of jobs' lives."""
    with open_lab(make_agent=_make_mortal_agent) as lab:
        _strike_all(lab, EVERYWHERE, repeat, toll)


def kubernetes_agent_killed_at_every_side_effect(repeat, toll):
    """The agent dies at the first, second, ... file, sync, rename or request of jobs' lives on Kubernetes."""
    with open_kubernetes_lab(nodes=2, make_agent=_make_mortal_agent) as lab:
        _strike_all(lab, ON_KUBERNETES, repeat, toll)


def _strike_all(lab, lives, repeat, toll):
    moments = [(life, at) for life in lives for at in range(1, _count_effects(lab, life, toll) + 1)]
    if toll.is_whole:
        toll.wanted = repeat = max(repeat, len(moments))
    for number in range(TRIES_PER_STRIKE * repeat):
        if toll.strikes == repeat:
            return
        # Evenly over all lives, and each moment once if there are as many repetitions.
        spread = number % repeat * len(moments) // repeat if repeat < len(moments) else number % len(moments)
        _strike(lab, *moments[spread], toll)


def _make_mortal_agent(cluster, world, **settings):
    agent = cluster.make_agent(world, **settings)
    agent.fuse = agent.state_dir / "fuse"
    agent.env = {**agent.env, "LD_PRELOAD": str(LIBRARY), "MUSTER_TEST_FUSE": str(agent.fuse)}
    return agent


def _count_effects(lab, life, toll):
    """How many effects the agent has in such a life."""
    toll.moment = f"{life.name}: "
    strike = Strike(lab, MOST_EFFECTS)
    job = life.live(lab, strike.reach)
    _see_out(lab, job, strike)
    effects = strike.end()
    assert 10 < effects < MOST_EFFECTS, effects
    toll.effects[life.name] = effects
    toll.audit(lab, [job], lambda _: life.end)
    return effects


def _strike(lab, life, at, toll):
    toll.moment = f"{life.name}, killed at effect {at}: "
    strike = Strike(lab, at)
    job = life.live(lab, strike.reach)
    _see_out(lab, job, strike)
    toll.strikes += strike.end() >= at
    toll.audit(lab, [job], lambda _: life.end)


def _see_out(lab, job, strike):
    """To the end of the life: the agent has cleaned up, too, or the audit will say what it has left."""
    strike.reach(lambda: lab.has_ended(job), "it has ended")
    with contextlib.suppress(AssertionError):
        strike.reach(lambda: not lab.left(), "nothing of it is left")


class Strike:
    """From now on the agent has so many effects to live."""

    def __init__(self, lab, effects):
        self._agent, self._limit, self._counted = lab.agent, effects, None
        self._count_file = self._agent.fuse.with_suffix(".count")
        self._count_file.unlink(missing_ok=True)
        fuse = self._agent.fuse.with_suffix(".new")
        fuse.write_text(str(effects))
        fuse.rename(self._agent.fuse)

    def reach(self, condition, words):
        """Waits for it; starts the agent again if it dies meanwhile."""
        has_died = lambda: self._counted is None and self._agent.process.poll() is not None
        eventually(lambda: has_died() or condition(), words)
        if has_died():
            self.end()
            eventually(condition, words)

    def end(self):
        """The agent dies no more. How many effects it had: if all that it was to have, it has been started again."""
        if self._counted is None:
            self._counted = self._put_out()
            if self._counted >= self._limit:
                assert self._agent.wait_exit() == -signal.SIGKILL
                self._agent.start()
        return self._counted

    def _put_out(self):
        with open(self._agent.fuse, encoding="ascii") as fuse:
            # The agent holds this lock while it counts, and until it has killed itself.
            fcntl.flock(fuse, fcntl.LOCK_EX)
            self._agent.fuse.unlink()
            return int(self._count_file.read_text()) if self._count_file.exists() else 0

"""The agent dies just before each of the things that it does outside itself."""

import contextlib
import fcntl
import signal

from harness.daemons import BIN
from harness.wait import eventually

from faults.kube_lab import open_kubernetes_lab, open_kueue_lab
from faults.lab import open_lab
from faults.lives import (BRINGING_ON_HOSTS, BRINGING_ON_KUBERNETES, BRINGING_ON_MACHINES, EVERYWHERE, ON_HOSTS,
                          ON_KUBERNETES, ON_KUEUE, ON_MACHINES)
from faults.machines import Hosts, OneMachine, open_machines_lab

LIBRARY = BIN / "muster_test_die.so"
# No life of a job reaches this number of effects; over SSH each packet is one.
MOST_EFFECTS = 3000
# About as many effects an agent has from its start until it has all its runs again.
RECOVERY_EFFECTS = 20
# Some lives are shorter than the one that was counted, and a late strike misses them.
TRIES_PER_STRIKE = 2


def agent_killed_at_every_side_effect(repeat, toll):
    """The agent dies at the first, second, ... file, sync, rename or command of jobs' lives, and again as it recovers."""
    with open_lab(make_agent=_make_mortal_agent) as lab:
        _strike_all(lab, EVERYWHERE, repeat, toll)


def kubernetes_agent_killed_at_every_side_effect(repeat, toll):
    """The agent dies at the first, second, ... file, sync, rename or request of jobs' lives on Kubernetes, and again."""
    with open_kubernetes_lab(nodes=2, make_agent=_make_impatient_agent) as lab:
        _strike_all(lab, ON_KUBERNETES, repeat, toll)


def kubernetes_agent_killed_as_it_brings_files(repeat, toll):
    """The agent dies at the first, second, ... effect of lives of jobs whose files are Secrets of Kubernetes, and again."""
    with open_kubernetes_lab(nodes=2, make_agent=_make_mortal_agent) as lab:
        _strike_all(lab, BRINGING_ON_KUBERNETES, repeat, toll)


def kueue_agent_killed_at_every_side_effect(repeat, toll):
    """The agent dies at the first, second, ... effect of lives of jobs on Kubernetes that Kueue starts, and again."""
    with open_kueue_lab(nodes=2, make_agent=_make_impatient_agent) as lab:
        _strike_all(lab, ON_KUEUE, repeat, toll)


def machines_agent_killed_at_every_side_effect(repeat, toll):
    """The agent of its own machine dies at the first, second, ... file, sync, rename or start of jobs' lives, and again."""
    with open_machines_lab(OneMachine(), _make_mortal_agent, nodes=1) as lab:
        _strike_all(lab, ON_MACHINES, repeat, toll)


def hosts_agent_killed_at_every_side_effect(repeat, toll):
    """The agent of hosts over SSH dies at the first, second, ... file, sync, rename or packet of jobs' lives, and again."""
    with open_machines_lab(Hosts(), _make_mortal_agent, nodes=2) as lab:
        _strike_all(lab, ON_HOSTS, repeat, toll)


def machines_agent_killed_as_it_lays_files_out(repeat, toll):
    """The agent of its own machine dies at the first, second, ... effect of lives of jobs that bring files, and again."""
    with open_machines_lab(OneMachine(), _make_mortal_agent, nodes=1) as lab:
        _strike_all(lab, BRINGING_ON_MACHINES, repeat, toll)


def hosts_agent_killed_as_it_lays_files_out(repeat, toll):
    """The agent of hosts over SSH dies at the first, second, ... effect of lives of jobs that bring files, and again."""
    with open_machines_lab(Hosts(), _make_mortal_agent, nodes=2) as lab:
        _strike_all(lab, BRINGING_ON_HOSTS, repeat, toll)


def _strike_all(lab, lives, repeat, toll):
    moments = [(life, deaths) for life in lives for deaths in _deaths(_count_effects(lab, life, toll))]
    if toll.is_whole:
        toll.wanted = repeat = max(repeat, len(moments))
    for number in range(TRIES_PER_STRIKE * repeat):
        if toll.strikes == repeat:
            return
        # Evenly over all lives, and each moment once if there are as many repetitions.
        spread = number % repeat * len(moments) // repeat if repeat < len(moments) else number % len(moments)
        _strike(lab, *moments[spread], toll)


def _deaths(effects):
    """Returns the moments at which the agent dies in a life: once, at each effect; and twice, the second time at each
    of the first ones that it has once it is started again. The earlier it dies first, the more it has left to do."""
    once = [(at,) for at in range(1, effects + 1)]
    twice = [(1 + effects * (RECOVERY_EFFECTS - again) // RECOVERY_EFFECTS, again)
             for again in range(1, RECOVERY_EFFECTS + 1)]
    return once + twice


def _make_mortal_agent(cluster, world, **settings):
    agent = cluster.make_agent(world, **settings)
    agent.fuse = agent.state_dir / "fuse"
    agent.env = {**agent.env, "LD_PRELOAD": str(LIBRARY), "MUSTER_TEST_FUSE": str(agent.fuse)}
    return agent


def _make_impatient_agent(cluster, world, **settings):
    """One that soon gives up a run whose image is missing."""
    return _make_mortal_agent(cluster, world, start_grace="1s", **settings)


def _count_effects(lab, life, toll):
    """Returns the number of effects that the agent has in such a life."""
    toll.moment = f"{life.name}: "
    strike = Strike(lab, MOST_EFFECTS)
    job = life.live(lab, strike.reach)
    _see_out(lab, job, strike)
    strike.end()
    effects = strike.counted
    assert 10 < effects < MOST_EFFECTS, effects
    toll.effects[life.name] = effects
    toll.audit(lab, [job], lambda _: life.end)
    return effects


def _strike(lab, life, deaths, toll):
    toll.moment = f"{life.name}, killed at effect {' and, once started again, at '.join(map(str, deaths))}: "
    strike = Strike(lab, *deaths)
    job = life.live(lab, strike.reach)
    _see_out(lab, job, strike)
    toll.strikes += strike.end()
    toll.audit(lab, [job], lambda _: life.end)


def _see_out(lab, job, strike):
    """Waits for the end of the life: the agent has cleaned up, too, or the audit will say what it has left."""
    strike.reach(lambda: lab.has_ended(job), "it has ended")
    with contextlib.suppress(AssertionError):
        strike.reach(lambda: not lab.left(), "nothing of it is left")


class Strike:
    """Limits the effects that the agent has to live from now on, and again once it is started again, and so on."""

    def __init__(self, lab, *deaths):
        self._agent, self._deaths, self._is_lit = lab.agent, list(deaths), False
        # The number of effects that the agent has had since it was started or the strike began.
        self.counted = 0
        self._count_file = self._agent.fuse.with_suffix(".count")
        self._light()

    def reach(self, condition, words):
        """Waits for it; starts the agent again whenever it dies meanwhile."""
        eventually(lambda: self._has_died() or condition(), words)
        while self._has_died():
            assert self._put_out(), f"the agent ended by itself: {self._agent.log()[-4000:]}"
            if self._deaths:
                self._light()
                self._agent.launch()
            else:
                self._agent.start()
            eventually(lambda: self._has_died() or condition(), words)

    def end(self):
        """The agent dies no more, and has been started again. Returns whether it has died as often as it
        was to."""
        if self._is_lit and self._put_out():
            self._agent.start()
        return not self._deaths

    def _has_died(self):
        return self._is_lit and self._agent.process.poll() is not None

    def _light(self):
        self._count_file.unlink(missing_ok=True)
        fuse = self._agent.fuse.with_suffix(".new")
        fuse.write_text(str(self._deaths[0]))
        fuse.rename(self._agent.fuse)
        self._is_lit = True

    def _put_out(self):
        """Tells whether the agent has died of it."""
        with open(self._agent.fuse, encoding="ascii") as fuse:
            # The agent holds this lock while it counts, and until it has killed itself.
            fcntl.flock(fuse, fcntl.LOCK_EX)
            self._agent.fuse.unlink()
            self.counted = int(self._count_file.read_text()) if self._count_file.exists() else 0
        self._is_lit = False
        if self.counted < self._deaths[0]:
            return False
        del self._deaths[0]
        assert self._agent.wait_exit() == -signal.SIGKILL
        return True

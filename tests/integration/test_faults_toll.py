"""The fault campaign sees what it is there to see."""

import sys
import types

import pytest
from muster.v1 import job_pb2

from harness.stubs import REPOSITORY

sys.path.append(str(REPOSITORY / "tests" / "faults"))

from faults.history import find_wrong_steps  # noqa: E402  it is beside the integration tests
from faults.toll import End, Toll  # noqa: E402

GOOD = ("ASSIGNED", "LAUNCHING", "PENDING", "STARTING", "RUNNING", "FINISHING", "SUCCEEDED")


def steps(*states, run=1, first=1):
    """Returns the transitions of one run, by the names of its states."""
    return [job_pb2.Transition(job_sequence=first + i, run=run, run_state=job_pb2.RunState.Value("RUN_STATE_" + state))
            for i, state in enumerate(states)]


def test_steps_that_can_have_been_are_not_wrong():
    first = steps("ASSIGNED", "LAUNCHING", "LAUNCH_UNKNOWN", "LAUNCHING", "PENDING", "RUNNING", "FINISHING", "FAILED")
    assert not find_wrong_steps(first + steps(*GOOD, run=2, first=len(first) + 1))


@pytest.mark.parametrize("states,words", [
    (("ASSIGNED", "RUNNING", "PENDING", "SUCCEEDED"), "RUN_STATE_PENDING () after RUN_STATE_RUNNING"),
    (("ASSIGNED", "FINISHING", "RUNNING", "SUCCEEDED"), "RUN_STATE_RUNNING () after RUN_STATE_FINISHING"),
    ((*GOOD, "FAILED"), "RUN_STATE_FAILED () after RUN_STATE_SUCCEEDED"),
    (("ASSIGNED", "LOST"), "became RUN_STATE_LOST"),
    (("ASSIGNED", "CANCELED"), "became RUN_STATE_CANCELED"),
])
def test_a_step_that_cannot_have_been_is_wrong(states, words):
    (wrong,) = find_wrong_steps(steps(*states))
    assert words in wrong


def test_a_step_that_is_missing_is_wrong():
    assert find_wrong_steps(steps(*GOOD)[:2] + steps(*GOOD)[3:]) == ["its steps are [1, 2, 4, 5, 6, 7]"]


def test_a_cancel_that_was_asked_for_is_not_wrong():
    asked = job_pb2.Transition(job_sequence=1, kind=job_pb2.TRANSITION_KIND_CANCEL_REQUESTED)
    assert not find_wrong_steps([asked, *steps("ASSIGNED", "CANCELED", first=2)])


def make_lab(states=GOOD, ran=1, log=b"log\n", second_log=b"log\n", runs=1, orphans=(), by_cluster=0,
             failure=job_pb2.FAILURE_CLASS_UNSPECIFIED, code=0):
    """One that has had one job, and says so of it; second_log is that of its rank 1, by_cluster how many starts the cluster
    itself tells of."""
    state = job_pb2.JobState.Value("JOB_STATE_" + states[-1])
    job = job_pb2.Job(id=7, state=state, runs=[job_pb2.Run(number=number + 1) for number in range(runs)],
                      failure=job_pb2.Failure(failure_class=failure), exit=job_pb2.ExitStatus(code=code))
    api = types.SimpleNamespace(wait_end=lambda _: job, transitions=lambda _: steps(*states),
                                stdout=lambda _, rank: (log, second_log)[rank])
    return types.SimpleNamespace(api=api, trio=types.SimpleNamespace(runs_of=lambda _: ran), log_of=lambda _: b"log\n",
                                 find_orphans=lambda: list(orphans),
                                 was_doubled_by_cluster=lambda _, starts: starts == by_cluster)


def test_what_the_cluster_itself_starts_twice_is_counted_apart():
    toll = Toll(wanted=1, strikes=1)
    toll.audit(make_lab(ran=2, by_cluster=2), [7])
    assert "1 jobs (1 started twice by the cluster itself): 0 lost, 0 doubled" in str(toll)
    assert toll.is_clean()


def test_the_words_of_a_start_that_the_cluster_took_back_before_it_ran_are_not_wrong():
    for by_cluster in (2, 0):
        toll = Toll(wanted=1, strikes=1)
        toll.audit(make_lab(log=b"log\nmuster: the rest of the output of main is missing\n", by_cluster=by_cluster), [7])
        assert toll.is_clean() == bool(by_cluster)


def test_the_pods_of_two_nodes_are_no_excuse_for_what_a_log_has_too_much():
    toll = Toll(wanted=1, strikes=1)
    toll.audit(make_lab(ran=2, log=b"log\nlog\n", by_cluster=2), [7], lambda _: End(starts=2))
    assert "1 told wrongly" in str(toll)


@pytest.mark.parametrize("seen,counts", [
    ({}, "0 lost, 0 doubled, 0 told wrongly, 0 orphans"),
    ({"ran": 0}, "1 lost, 0 doubled, 0 told wrongly, 0 orphans"),
    ({"ran": 2}, "0 lost, 1 doubled, 0 told wrongly, 0 orphans"),
    ({"states": ("ASSIGNED", "FAILED")}, "0 lost, 0 doubled, 1 told wrongly, 0 orphans"),
    ({"states": ("ASSIGNED", "RUNNING", "PENDING", "SUCCEEDED")}, "0 lost, 0 doubled, 1 told wrongly, 0 orphans"),
    ({"log": b"lo"}, "0 lost, 0 doubled, 1 told wrongly, 0 orphans"),
    ({"runs": 2}, "0 lost, 0 doubled, 1 told wrongly, 0 orphans"),
    ({"orphans": ["secrets k7m2-7-1"]}, "0 lost, 0 doubled, 0 told wrongly, 1 orphans"),
])
def test_what_a_fault_cost_is_counted(seen, counts):
    toll = Toll(wanted=1, strikes=1)
    toll.audit(make_lab(**seen), [7])
    assert counts in str(toll)
    assert toll.is_clean() == (not seen)


GIVEN_UP = End(starts=0, failure=job_pb2.FAILURE_CLASS_IMAGE)
FAILED = ("ASSIGNED", "LAUNCHING", "PENDING", "FAILED")
CANCELED = ("ASSIGNED", "LAUNCHING", "PENDING", "CANCELED")
REST_IS_MISSING = b"muster: the rest of the output of main is missing: its pod is gone\n"


@pytest.mark.parametrize("end,seen,counts", [
    (End(is_canceled=True, starts=0), {"states": CANCELED, "ran": 0}, "0 lost, 0 doubled, 0 told wrongly"),
    (End(is_canceled=True, starts=0), {"states": CANCELED}, "0 lost, 1 doubled, 0 told wrongly"),
    (End(is_canceled=True), {"states": CANCELED, "ran": 0}, "1 lost, 0 doubled, 0 told wrongly"),
    (End(is_canceled=True), {"states": CANCELED, "log": b"log\n" + REST_IS_MISSING}, "0 lost, 0 doubled, 0 told wrongly"),
    (End(is_canceled=True), {"states": CANCELED, "log": b"log\nmuster: else\n"}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(is_canceled=True), {"states": CANCELED, "log": b"log\n" + 2 * REST_IS_MISSING}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(is_canceled=True), {"states": CANCELED, "log": b"log\nmore\n"}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(), {"log": b"log\n" + REST_IS_MISSING}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(is_canceled=True), {}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(starts=2), {"ran": 2}, "0 lost, 0 doubled, 0 told wrongly"),
    (End(starts=2), {"ran": 2, "second_log": b"lo"}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(starts=2), {"ran": 1}, "1 lost, 0 doubled, 0 told wrongly"),
    (End(starts=2), {"ran": 3}, "0 lost, 1 doubled, 0 told wrongly"),
    (End(code=3), {}, "0 lost, 0 doubled, 1 told wrongly"),
    (GIVEN_UP, {"states": FAILED, "ran": 0, "failure": job_pb2.FAILURE_CLASS_IMAGE}, "0 lost, 0 doubled, 0 told wrongly"),
    (GIVEN_UP, {"states": FAILED, "ran": 0, "failure": job_pb2.FAILURE_CLASS_INFRA}, "0 lost, 0 doubled, 1 told wrongly"),
    (GIVEN_UP, {"ran": 0, "failure": job_pb2.FAILURE_CLASS_IMAGE}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(code=3), {"states": FAILED, "code": 3}, "0 lost, 0 doubled, 0 told wrongly"),
    (End(code=3), {"states": FAILED, "code": 4}, "0 lost, 0 doubled, 1 told wrongly"),
    (End(code=3), {"states": CANCELED, "code": 3}, "0 lost, 0 doubled, 1 told wrongly"),
    (None, {"states": FAILED}, "0 lost, 0 doubled, 0 told wrongly"),
])
def test_what_becomes_of_a_job_is_compared_with_the_end_of_its_life(end, seen, counts):
    toll = Toll(wanted=1, strikes=1)
    lab = make_lab(**seen)
    asked = job_pb2.Transition(job_sequence=1, kind=job_pb2.TRANSITION_KIND_CANCEL_REQUESTED)
    history = [asked, *steps(*seen.get("states", GOOD), first=2)]
    lab.api.transitions = lambda _: history
    toll.audit(lab, [7], lambda _: end)
    assert counts in str(toll)


def test_a_complaint_names_what_was_struck_and_the_toll_how_much_there_is():
    toll = Toll(wanted=1, strikes=1, effects={"a success": 40, "two nodes": 60}, moment="two nodes, killed at effect 9: ")
    toll.audit(make_lab(ran=0), [7])
    assert "1 of 1 strikes at 100 effects (a success 40, two nodes 60), 1 jobs" in str(toll)
    assert "two nodes, killed at effect 9: job 7 ran 0 times of 1" in str(toll)

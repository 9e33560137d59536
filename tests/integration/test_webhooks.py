"""Webhooks: what real receivers are told of real jobs, whatever becomes of the receivers and of the broker."""

import importlib.util
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
import yaml
from muster.v1 import job_pb2, jobs_service_pb2

from harness.api import CALL_TIMEOUT_S, argv_spec, script_spec
from harness.connect import Connect, port_of
from harness.impostors import make_certificate
from harness.receiver import receiving
from harness.wait import eventually

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "docs/examples/python/webhook_receiver.py"
SECRET = "0123456789abcdef0123456789abcdef"


def write_webhooks(world, **webhooks):
    """The broker's file of webhooks. Those without a format get a secret."""
    secret = world.write("secret", SECRET + "\n")
    secret.chmod(0o600)
    for webhook in webhooks.values():
        if webhook.get("format") != "slack":
            webhook.setdefault("secret_file", str(secret))
    return world.write("webhooks.yaml", yaml.safe_dump(webhooks, sort_keys=False))


def make_broker(world, **webhooks):
    path = write_webhooks(world, **webhooks)
    config = {"heartbeat_interval": "3s", "notify": {"webhooks": str(path)},
              "http": {"listen": "127.0.0.1:0", "open_metrics": True}}
    return world.make_broker(config=yaml.safe_dump(config))


def start(world, **webhooks):
    """A broker with these webhooks, and its API, with an agent."""
    broker = make_broker(world, **webhooks).start()
    world.make_agent().start()
    return broker, world.api(broker)


def is_genuine(headers, body):
    """Asks the example of the documentation."""
    spec = importlib.util.spec_from_file_location("webhook_receiver", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert not example.is_genuine(SECRET.encode() + b"x", headers["Muster-Signature"], body)
    assert not example.is_genuine(SECRET.encode(), headers["Muster-Signature"], body + b" ")
    return example.is_genuine(SECRET.encode(), headers["Muster-Signature"], body)


def count_of(broker, name, webhook="ops"):
    caller = Connect(port_of(broker))
    _, body = caller.request("GET", "/metrics")
    caller.close()
    prefix = f'muster_webhook_{name}{{webhook="{webhook}"}} '
    return next(float(line.removeprefix(prefix)) for line in body.decode().splitlines() if line.startswith(prefix))


def end_of(api, job):
    """The step into the job's last state."""
    return next(step for step in api.transitions(job) if step.job_state == api.get(job).state)


def cursor_of(broker, webhook="ops"):
    return broker.state_dir / "webhooks" / f"{webhook}.cursor"


def test_each_end_arrives_once_and_in_order_with_what_the_api_says(world):
    with receiving() as (receiver, url):
        broker, api = start(world, ops={"url": url})
        jobs = api.submit_many([argv_spec("true", name=f"job-{i}", labels={"i": str(i)}) for i in range(20)])
        jobs.append(api.submit(script_spec("exit 3", name="bad")))
        held = api.submit(argv_spec("true"), held=True)
        api.jobs.CancelJobs(jobs_service_pb2.CancelJobsRequest(job_ids=[held], reason="too slow"), timeout=CALL_TIMEOUT_S)
        jobs.append(held)
        eventually(lambda: len(receiver.taken) >= len(jobs), "all ends arrive", alive=broker.check_alive)
        assert sorted(receiver.jobs()) == sorted(jobs), "each once"
        ids = [int(body["id"]) for body in receiver.bodies()]
        assert ids == sorted(ids), "in the order of the steps"
        for headers, body in receiver.taken:
            assert is_genuine(headers, body)
            assert headers["Content-Type"] == "application/json"
        by_job = {int(body["job"]["id"]): body for body in receiver.bodies()}
        assert [headers["Muster-Event-Id"] for headers, _ in receiver.taken] == [str(number) for number in ids]
        for job in jobs:
            assert int(by_job[job]["id"]) == end_of(api, job).sequence
        first, bad, canceled = by_job[jobs[0]], by_job[jobs[20]], by_job[held]
        assert first["type"] == "job.succeeded" and first["job"]["labels"] == {"i": "0"}
        assert first["job"]["cluster"] == "box" and first["job"]["endTime"] and first["job"]["user"]
        failure = api.get(jobs[20]).failure
        assert bad["type"] == "job.failed" and bad["job"]["failure"]["message"] == failure.message
        assert failure.message in bad["message"] and bad["job"]["exit"]["code"] == 3
        assert canceled["type"] == "job.canceled" and "too slow" in canceled["message"]
        eventually(lambda: count_of(broker, "backlog_changes") == 0, "all was looked at")
        assert count_of(broker, "delivered_total") == len(jobs)
        assert count_of(broker, "failed_tries_total") == count_of(broker, "given_up_total") == 0


def test_an_event_is_tried_again_until_it_is_taken_and_those_behind_it_wait(world):
    with receiving() as (receiver, url):
        receiver.answer(503, 429, 500, headers={"Retry-After": "3"})
        broker, api = start(world, ops={"url": url})
        jobs = [api.submit(argv_spec("true")), api.submit(argv_spec("true"))]
        eventually(lambda: len(receiver.taken) == 2, "both arrive", alive=broker.check_alive)
        assert sorted(receiver.jobs()) == jobs
        assert [status for _, status in receiver.tries] == [503, 429, 500, 200, 200]
        assert len({event for event, _ in receiver.tries[:4]}) == 1, "a number belongs to its event"
        assert count_of(broker, "failed_tries_total") == 3
        assert "webhook_failing" in broker.log() and "webhook_delivers" in broker.log()
        assert "TOKEN" not in broker.log(), "the URL is a secret"


def test_an_event_that_is_refused_again_and_again_is_given_up(world):
    with receiving() as (receiver, url):
        receiver.answer(*[410] * 5)
        broker, api = start(world, ops={"url": url})
        lost = api.submit(argv_spec("true"))
        api.wait_end(lost)
        job = api.submit(argv_spec("true"))
        eventually(lambda: receiver.jobs() == [job], "the next one arrives", alive=broker.check_alive)
        assert [status for _, status in receiver.tries] == [410] * 5 + [200]
        assert f"webhook_gave_up webhook=ops event={end_of(api, lost).sequence} job={lost}" in broker.log()
        assert count_of(broker, "given_up_total") == 1


def test_no_redirection_is_followed(world):
    with receiving() as (elsewhere, other), receiving() as (receiver, url):
        receiver.answer(307, headers={"Location": other})
        broker, api = start(world, ops={"url": url})
        job = api.submit(argv_spec("true"))
        eventually(lambda: receiver.jobs() == [job], "it is tried again where it belongs", alive=broker.check_alive)
        assert not elsewhere.tries


def test_a_killed_broker_loses_no_event_and_repeats_only_what_was_not_confirmed(world):
    with receiving() as (receiver, url):
        broker, api = start(world, ops={"url": url})
        jobs, kills = [], 0
        for _ in range(4):
            jobs += api.submit_many([argv_spec("true")] * 6)
            before = len(receiver.tries)
            receiver.released.clear()  # the answer to the next event does not come
            eventually(lambda seen=before: len(receiver.tries) > seen, "an event is on its way", alive=broker.check_alive)
            broker.kill()
            kills += 1
            receiver.released.set()
            broker.start()
        eventually(lambda: set(receiver.jobs()) == set(jobs), "all ends arrive", alive=broker.check_alive)
        ids = [int(body["id"]) for body in receiver.bodies()]
        assert ids == sorted(ids), "in order, also over the restarts"
        assert len(ids) - len(set(ids)) <= kills, "no more than the one without an answer"
        assert len(set(ids)) == len(jobs)


def test_a_dead_receiver_and_a_slow_one_hold_up_no_other(world):
    with socket.socket() as closed, receiving() as (slow, slow_url), receiving() as (receiver, url):
        closed.bind(("127.0.0.1", 0))  # nobody listens there
        slow.released.clear()
        broker, api = start(world, dead={"url": f"http://127.0.0.1:{closed.getsockname()[1]}/"}, slow={"url": slow_url},
                            ops={"url": url})
        jobs = api.submit_many([argv_spec("true")] * 5)
        eventually(lambda: sorted(receiver.jobs()) == jobs, "the others hear of all", alive=broker.check_alive)
        assert count_of(broker, "delivered_total", "slow") == 0
        eventually(lambda: count_of(broker, "failed_tries_total", "dead") > 0, "the dead one was tried")
        assert count_of(broker, "backlog_changes", "dead") > 0
        assert broker.terminate() == 0, "nor do they hold up the broker's end"
        slow.released.set()


def test_a_receiver_over_https_is_told_only_if_its_certificate_is_good(world):
    good, bad = (make_certificate(world.root, name) for name in ("good", "bad"))
    with receiving(good) as (receiver, url), receiving(bad) as (stranger, other):
        authority = str(good[0])
        broker, api = start(world, ops={"url": url, "ca_file": authority}, wrong={"url": other, "ca_file": authority},
                            unknown={"url": url})
        job = api.submit(argv_spec("true"))
        eventually(lambda: receiver.jobs() == [job], "it arrives", alive=broker.check_alive)
        for name in ("wrong", "unknown"):
            eventually(lambda who=name: count_of(broker, "failed_tries_total", who) > 0, f"{name} was tried")
            line = next(line for line in broker.log().splitlines() if f"webhook_failing webhook={name}" in line)
            assert "certificate" in line
        assert receiver.jobs() == [job] and not stranger.tries


def test_a_webhook_hears_of_the_states_and_the_jobs_that_it_names(world):
    with receiving() as (receiver, url), receiving() as (everything, all_url):
        broker, api = start(world, ops={"url": url, "states": ["running", "failed"], "filter": "label.team = vision"},
                            all={"url": all_url}, other={"url": url, "project": "elsewhere"})
        gate = world.gate()
        wanted = api.submit(script_spec(f"{gate.script()}; exit 1", labels={"team": "vision"}))
        eventually(lambda: len(receiver.taken) == 1, "it runs", alive=broker.check_alive)
        others = [api.submit(script_spec("exit 1")), api.submit(argv_spec("true", labels={"team": "vision"}))]
        for job in others:
            api.wait_end(job)
        gate.open()
        eventually(lambda: len(everything.taken) == 3, "all have ended", alive=broker.check_alive)
        eventually(lambda: count_of(broker, "backlog_changes") == 0, "all was looked at")
        heard = [(body["type"], int(body["job"]["id"])) for body in receiver.bodies()]
        assert [what for what in heard if what[1] == wanted] == [("job.running", wanted), ("job.failed", wanted)]
        assert {job for _, job in heard} <= {wanted, others[1]}
        assert ("job.succeeded", others[1]) not in heard


def test_slack_gets_a_text_that_no_user_can_make_a_command_of(world):
    with receiving() as (receiver, url):
        broker, api = start(world, chat={"url": url, "format": "slack"})
        job = api.submit(script_spec("exit 3", name="a & <b>"))
        eventually(lambda: receiver.taken, "it arrives", alive=broker.check_alive)
        (body,) = receiver.bodies()
        assert list(body) == ["text"]
        assert body["text"].startswith(f"Job {job} (a &amp; &lt;b&gt;) of ")
        assert "FAILED on box: " in body["text"] and "Muster-Signature" not in receiver.taken[0][0]


def attributes_of(thing):
    return {entry["key"]: next(iter(entry["value"].values())) for entry in thing["attributes"]}


def test_a_collector_gets_one_trace_of_each_job_at_its_end(world):
    with receiving() as (collector, url):
        broker, api = start(world, traces={"url": url, "format": "otlp"})
        jobs = [api.submit(argv_spec("true", name="good")), api.submit(script_spec("exit 3", labels={"team": "vision"}))]
        eventually(lambda: len(collector.taken) == 2, "both traces arrive", alive=broker.check_alive)
        traces = {}
        for body in collector.bodies():
            (resource,) = body["resourceSpans"]
            assert attributes_of(resource["resource"])["service.name"] == "muster"
            (scope,) = resource["scopeSpans"]
            traces[int(attributes_of(scope["spans"][0])["muster.job.id"])] = scope["spans"]
        assert sorted(traces) == jobs
        for job, spans in traces.items():
            assert [span["name"] for span in spans] == ["job", "waiting", "run"]
            root, waiting, run = spans
            assert root["startTimeUnixNano"] == waiting["startTimeUnixNano"] <= waiting["endTimeUnixNano"]
            assert waiting["endTimeUnixNano"] == run["startTimeUnixNano"]
            steps = api.transitions(job)
            assert sum(len(span.get("events", [])) for span in spans) == len(steps)
            wanted = [job_pb2.RunState.Name(step.run_state).removeprefix("RUN_STATE_") for step in steps if step.run]
            assert [event["name"] for event in run["events"]] == wanted
            assert [attributes_of(event).get("muster.evidence.detail", "") for event in run["events"]] == [
                step.evidence.detail for step in steps if step.run]
        good, bad = traces[jobs[0]], traces[jobs[1]]
        assert good[0]["status"] == {"code": 1} and attributes_of(good[0])["muster.job.name"] == "good"
        assert bad[0]["status"] == {"code": 2, "message": api.get(jobs[1]).failure.message}
        assert attributes_of(bad[0])["muster.label.team"] == "vision" and attributes_of(bad[2])["muster.exit.code"] == "3"
        assert good[0]["traceId"] != bad[0]["traceId"]


def test_an_operator_has_events_sent_again_by_the_webhooks_file(world):
    with receiving() as (receiver, url):
        broker, api = start(world, ops={"url": url})
        jobs = api.submit_many([argv_spec("true"), script_spec("exit 3")])
        eventually(lambda: len(receiver.taken) == 2, "both arrive", alive=broker.check_alive)
        eventually(lambda: count_of(broker, "delivered_total") == 2, "both are confirmed")
        assert broker.terminate() == 0
        cursor_of(broker).write_text("after: 0\n")
        broker.start()
        eventually(lambda: len(receiver.taken) == 4, "both arrive again", alive=broker.check_alive)
        bodies = receiver.bodies()
        assert bodies[:2] == bodies[2:], "the same events, from memory and from the store"
        assert sorted(receiver.jobs()[:2]) == jobs


def test_a_webhook_without_a_file_begins_with_what_comes_next(world):
    with receiving() as (receiver, url):
        broker = world.make_broker().start()
        world.make_agent().start()
        early = world.api(broker).submit(argv_spec("true"))
        world.api(broker).wait_end(early)
        assert broker.terminate() == 0
        path = write_webhooks(world, ops={"url": url})
        broker.argv += ["--notify-webhooks", str(path)]
        broker.start()
        late = world.api(broker).submit(argv_spec("true"))
        eventually(lambda: receiver.jobs() == [late], "the later one arrives", alive=broker.check_alive)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_example_of_a_receiver_takes_each_event_once_and_no_forged_one(world):
    secret = write_webhooks(world).parent / "secret"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, EXAMPLE, secret, str(port)], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL)
    try:
        broker, api = start(world, ops={"url": f"http://127.0.0.1:{port}/"})
        eventually(lambda: listens(port), "it listens")
        job = api.submit(argv_spec("true", name="hello"))
        assert process.stdout.readline().startswith(f"job.succeeded {job} Job {job} (hello) of ")
        forged = Connect(port)
        answer, _ = forged.request("POST", "/", body=b"{}", headers={"Muster-Signature": "t=1,v1=00"})
        forged.close()
        assert answer.status == 401
        eventually(lambda: count_of(broker, "delivered_total") == 1, "it is confirmed")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


@pytest.mark.parametrize("webhooks,words", [
    ({"ops": {"url": "http://hooks.example.org/TOKEN"}}, "webhooks.yaml:2:8: ops.url: the URL must be https://HOST"),
    ({"ops": {"url": "https://hooks.example.org", "secret_file": "/nowhere"}}, "webhooks.yaml: ops.secret_file: "),
    ({"ops": {"url": "https://hooks.example.org", "filter": "colour = red"}}, "ops.filter: "),
    ({"ops": {"url": "https://hooks.example.org", "states": ["LOST"]}}, "use RUNNING, SUCCEEDED, FAILED, CANCELED"),
    ({"Ops": {"url": "https://hooks.example.org"}}, '"Ops" is no name of a webhook'),
])
def test_bad_settings_are_named(world, webhooks, words):
    done = world.daemon_once("muster-broker", "--notify-webhooks", write_webhooks(world, **webhooks))
    assert done.returncode == 2 and words in done.stderr and "notify.webhooks: " in done.stderr, done.stderr
    assert "TOKEN" not in done.stderr


def test_a_webhooks_file_that_is_none_is_named_and_nothing_is_served(world):
    with receiving() as (_, url):
        broker = make_broker(world, ops={"url": url})
        cursor_of(broker).parent.mkdir(parents=True)
        cursor_of(broker).write_text("yesterday\n")
        broker.launch()
        assert broker.wait_exit() == 1
        assert f"{cursor_of(broker)}: the line \"yesterday\" is neither" in broker.log()

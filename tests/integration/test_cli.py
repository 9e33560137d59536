"""muster, the command line: what it prints, where, and with which exit code."""

import base64
import json
import os
import pty
import re
import subprocess

import pytest
import yaml

from muster.v1 import job_pb2

from harness.api import SUCCEEDED
from harness.daemons import BIN
from harness.wait import eventually

OK, ERROR, USAGE, TIME_OUT, JOB_FAILED, JOB_CANCELED, INFRASTRUCTURE, CANNOT_BE_PLACED = 0, 1, 2, 8, 10, 11, 12, 13
ESCAPE = "\x1b"


def submit(world, *command, options=()):
    """The new job's number."""
    return world.cli("run", "-q", *options, "--", *command).stdout.strip()


@pytest.mark.parametrize("binary", ["muster", "muster-broker", "muster-agent"])
@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_every_binary_has_help_and_version(world, binary, flag):
    done = subprocess.run([BIN / binary, flag], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert re.search(r"\d+\.\d+\.\d+" if flag == "--version" else binary, done.stdout)


def test_version_tells_the_clients_own(world, broker):
    assert re.search(r"\d+\.\d+\.\d+", world.cli("version").stdout)


def test_quiet_prints_the_number_alone(world, agent):
    done = world.cli("run", "-q", "--", "true")
    assert re.fullmatch(r"\d+\n", done.stdout)
    assert done.stderr == ""


def test_run_waits_and_shows_the_log(world, agent):
    done = world.cli("run", "--wait", "--", "sh", "-c", "echo out; echo err >&2")
    assert done.stdout == "out\n"
    assert "err\n" in done.stderr


@pytest.mark.parametrize("command, code", [
    (["true"], OK), (["sh", "-c", "exit 3"], JOB_FAILED), (["sh", "-c", "kill -9 $$"], JOB_FAILED)])
def test_run_waits_and_exits_by_the_outcome(world, agent, command, code):
    assert world.cli("run", "--wait", "--", *command, check=False).returncode == code


def test_run_takes_its_options(world, agent):
    number = submit(world, "true", options=[
        "--name", "tidy", "--cluster", "box", "--nodes", "1", "--cpus", "2", "--memory", "64Mi", "--time", "1h30m",
        "--env", "A=1", "--env", "B=two words", "--label", "team=vision"])
    spec = world.cli_json("show", number)["spec"]
    assert spec["name"] == "tidy"
    assert spec["placement"]["clusters"] == ["box"]
    assert int(spec["resources"]["cpu_millis"]) == 2000
    assert int(spec["resources"]["memory_bytes"]) == 64 << 20
    assert spec["time_limit"] == "5400s"
    assert spec["env"] == {"A": "1", "B": "two words"}
    assert spec["labels"] == {"team": "vision"}


def test_gpus_by_type_and_count(world, broker):
    world.make_agent(config=world.machines_config(gpus={"h100": 4})).start()
    done = world.cli("run", "--wait", "--gpus", "H100:2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert re.fullmatch(r"\d,\d\n", done.stdout)


JOB_FILE = """
name: from-a-file
resources:
  cpus: 1
  memory: 16Mi
time: 10m
env:
  WHO: world
labels:
  team: vision
run: |
  echo "hello $WHO"
"""


def test_submit_of_a_file(world, agent, api):
    path = world.write("job.yaml", JOB_FILE)
    number = world.cli("submit", "-q", path).stdout.strip()
    assert world.cli("wait", number, check=False).returncode == OK
    job = api.get(int(number))
    assert job.name == "from-a-file"
    assert job.spec.time_limit.seconds == 600
    assert job.spec.resources.memory_bytes == 16 << 20
    assert world.cli("logs", number).stdout == "hello world\n"


def test_the_spec_of_a_job_is_a_job_file(world, agent, api):
    """muster show -o json ID | jq .spec > job.json; muster submit job.json"""
    world.write("sent.txt", "sent along\n")
    file = world.write("job.yaml", JOB_FILE.replace("labels:", "file_mounts: {in/sent.txt: sent.txt}\nlabels:")
                       + "  cat in/sent.txt\nretry: {backoff: 1.5s, exit_codes: [3]}\n")
    number = world.cli("submit", "-q", "--as", "muster", file).stdout.strip()
    assert world.cli("wait", number, check=False).returncode == OK
    shown = json.loads(world.cli("show", "-o", "json", number).stdout)["spec"]
    copy = world.write("job.json", json.dumps(shown))
    again = world.cli("submit", "-q", copy).stdout.strip()
    assert world.cli("wait", again, check=False).returncode == OK
    assert api.get(int(again)).spec == api.get(int(number)).spec
    assert world.cli("logs", again).stdout == "hello world\nsent along\n"


def test_wait_gives_up_at_its_time_out(world, agent):
    number = submit(world, "sleep", "1000")
    assert world.cli("wait", "--timeout", "1s", number, check=False).returncode == TIME_OUT


def test_wait_exits_by_the_outcome(world, agent):
    failed = submit(world, "false")
    assert world.cli("wait", failed, check=False).returncode == JOB_FAILED
    canceled = submit(world, "sleep", "1000")
    world.cli("cancel", canceled)
    assert world.cli("wait", canceled, check=False).returncode == JOB_CANCELED


def test_a_job_that_cannot_be_placed_has_its_exit_code(world, agent):
    done = world.cli("run", "--cpus", "9999", "--", "true", check=False)
    assert done.returncode == CANNOT_BE_PLACED
    assert done.stdout == ""
    assert "9999" in done.stderr


def test_list_in_every_format(world, agent, api):
    number = submit(world, "true", options=["--name", "one", "--label", "team=vision"])
    api.wait_state(int(number), SUCCEEDED)
    table = world.cli("list").stdout
    assert "one" in table and "SUCCEEDED" in table.upper()
    assert len(world.cli("list", "-o", "wide").stdout.splitlines()) == 2
    assert world.cli("list", "-o", "name").stdout.split() == [number]
    assert world.cli("list", "-q").stdout.split() == [number]
    as_json = json.loads(world.cli("list", "-o", "json").stdout)
    assert as_json["jobs"][0]["state"] == "JOB_STATE_SUCCEEDED"
    assert as_json["jobs"][0]["create_time"]
    (line,) = world.cli("list", "-o", "jsonl").stdout.splitlines()
    assert json.loads(line)["name"] == "one"
    assert yaml.safe_load(world.cli("list", "-o", "yaml").stdout)


def test_list_takes_a_filter(world, agent, api):
    for team in ("a", "b"):
        api.wait_end(int(submit(world, "true", options=["--label", f"team={team}", "--name", team])))
    assert world.cli("list", "-o", "json", "--filter", "label.team = a").stdout.count('"name"') >= 1
    names = [json.loads(line)["name"] for line in
             world.cli("list", "-o", "jsonl", "--filter", "label.team = a").stdout.splitlines()]
    assert names == ["a"]


def test_show_tells_why_a_job_failed(world, agent):
    number = submit(world, "/nonexistent/program")
    world.cli("wait", number, check=False)
    shown = world.cli("show", number).stdout
    assert "/nonexistent/program" in shown
    assert "CONFIG" in shown
    assert f"{number}.1" in shown


def test_events_end_with_the_job(world, agent):
    number = submit(world, "true")
    lines = world.cli("events", "-f", number).stdout
    assert "SUCCEEDED" in lines
    as_json = [json.loads(line) for line in world.cli("events", "-o", "jsonl", number).stdout.splitlines()]
    assert as_json and all(step["transition"]["evidence"]["source"] for step in as_json)


def test_logs_by_stream_and_offset(world, agent):
    number = submit(world, "sh", "-c", "echo out; echo err >&2")
    world.cli("wait", number)
    both = world.cli("logs", number)
    assert (both.stdout, both.stderr) == ("out\n", "err\n")
    alone = world.cli("logs", "--stdout", number)
    assert (alone.stdout, alone.stderr) == ("out\n", "")
    assert world.cli("logs", "--stderr", number).stdout == "err\n"
    assert world.cli("logs", "--rank", "0", number).stdout == "out\n"
    assert world.cli("logs", "--stdout", "--since-offset", "2", number).stdout == "t\n"


def test_a_traceback_is_in_the_log_and_no_log_is_said_to_be_empty(world, agent):
    number = submit(world, "python3", "-c", "raise ValueError('seen')")
    world.cli("wait", number, check=False)
    done = world.cli("logs", number)
    assert "ValueError: seen" in done.stderr and "empty" not in done.stderr
    silent = submit(world, "true")
    world.cli("wait", silent)
    assert world.cli("logs", silent).stderr == "muster: the log is empty\n"


def test_the_last_lines_are_counted_over_both_outputs(world, agent):
    number = submit(world, "sh", "-c", "seq 1000; echo err >&2")
    world.cli("wait", number)
    # The two outputs are read by a shipper, so that which of them came first is not the program's to say.
    done = world.cli("logs", "--tail", "1001", number)
    assert (done.stdout.count("\n"), done.stderr) == (1000, "err\n")
    assert world.cli("logs", "--stdout", "--tail", "2", number).stdout == "999\n1000\n"
    few = world.cli("logs", "--tail", "3", number)
    assert len((few.stdout + few.stderr).splitlines()) == 3


def test_logs_as_json_are_the_log_byte_for_byte(world, agent):
    number = submit(world, "sh", "-c", r"printf 'one\ntwo\377\nthree'; echo bad >&2")
    world.cli("wait", number)
    objects = [json.loads(line) for line in world.cli("logs", "-o", "json", number).stdout.splitlines()]
    of_stdout = [one for one in objects if one["stream"] == "LOG_STREAM_STDOUT"]
    pieces = [one["data"].encode() if "data" in one else base64.b64decode(one["data_base64"]) for one in of_stdout[:-1]]
    assert pieces == [b"one\n", b"two\xff\n", b"three"]
    assert [one["offset"] for one in of_stdout] == ["0", "4", "9", "14"]
    assert of_stdout[-1]["end"] == "LOG_END_COMPLETE"


def test_logs_follow_to_the_end(world, agent):
    gate = world.gate()
    number = submit(world, "sh", "-c", f"echo first; {gate.script()}; echo second")
    follower = world.cli_start("logs", "-f", number)
    eventually(lambda: follower.output() == b"first\n", "the first line is shown")
    gate.open()
    assert follower.wait() == 0
    assert follower.output() == b"first\nsecond\n"


def submit_with_a_retry(world, script):
    """The number of a job that runs again whenever its script fails."""
    path = world.write("retry.yaml", f"command: [sh, -c, '{script}']\nretry: {{on_failure: true, backoff: 1s}}\n")
    return world.cli("submit", "-q", path).stdout.strip()


def test_logs_follow_a_job_from_run_to_run(world, agent):
    gate = world.gate()
    number = submit_with_a_retry(world, f"echo run $MUSTER_RUN; {gate.script()}; [ $MUSTER_RUN -gt 1 ]")
    follower = world.cli_start("logs", "-f", number)
    of_first = world.cli_start("logs", "-f", "--run", "1", number)
    for one in (follower, of_first):
        eventually(lambda one=one: one.output() == b"run 1\n", "the first run's line is shown")
    gate.open()
    assert (follower.wait(), of_first.wait()) == (0, 0)
    assert follower.output() == b"run 1\nrun 2\n"
    assert f"muster: run {number}.1 has ended; the log of run {number}.2 follows\n" in follower.errors()
    assert of_first.output() == b"run 1\n"


def test_who_waits_is_told_of_a_retry_once(world, agent):
    path = world.write("retry.yaml", "command: [sh, -c, '[ $MUSTER_RUN -gt 2 ]']\n"
                                     "retry: {on_failure: true, backoff: 1s}\n")
    told = world.cli("submit", "--wait", path).stderr.splitlines()
    begin = next(i for i, line in enumerate(told) if "is PENDING" in line or "is RUNNING" in line)
    queued = [line for line in told[begin:] if "is QUEUED" in line]
    assert [run for line in queued for run in re.findall(r"for run (\d)", line) or ["?"]] == ["2", "3"], told


def run_on_a_terminal(world, *args, env=None):
    """Returns what muster writes to a terminal."""
    controller, terminal = pty.openpty()
    import subprocess
    environment = {**world._environment(), "MUSTER_BROKER": world.broker.address, "TERM": "xterm"}
    environment.pop("NO_COLOR")
    process = subprocess.Popen([BIN / "muster", *args], stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL,
                               env={**environment, **(env or {})}, close_fds=True)
    os.close(terminal)
    written = b""
    try:
        while True:
            piece = os.read(controller, 65536)
            if not piece:
                break
            written += piece
    except OSError:
        pass  # EIO: the other end is closed
    os.close(controller)
    assert process.wait(60) == 0
    return written.decode()


def test_escapes_in_logs_are_harmless_on_a_terminal_unless_raw(world, agent):
    number = submit(world, "printf", r"\033]0;owned\007 \033[31mred\033[0m\n")
    world.cli("wait", number)
    shown = run_on_a_terminal(world, "logs", number)
    assert f"{ESCAPE}]" not in shown and "red" in shown
    raw = run_on_a_terminal(world, "logs", "--raw", number)
    assert f"{ESCAPE}]0;owned" in raw
    raw_pipe = world.cli("logs", "--raw", number).stdout
    assert raw_pipe == f"{ESCAPE}]0;owned\x07 {ESCAPE}[31mred{ESCAPE}[0m\n"


def test_colour_only_on_a_terminal(world, agent, api):
    api.wait_end(int(submit(world, "true")))
    assert ESCAPE not in world.cli("list").stdout
    assert f"{ESCAPE}[" in run_on_a_terminal(world, "list")
    assert ESCAPE not in run_on_a_terminal(world, "list", env={"NO_COLOR": "1"})


def test_clusters_are_listed(world, agent):
    assert "box" in world.cli("clusters").stdout
    (cluster,) = world.cli_json("clusters")["clusters"]
    assert cluster["kind"] == "CLUSTER_KIND_MACHINES"
    assert cluster["state"] == "CLUSTER_STATE_CONNECTED"


def test_cancel_of_several_jobs(world, agent, api):
    numbers = [submit(world, "sleep", "1000") for _ in range(3)]
    world.cli("cancel", *numbers)
    for number in numbers:
        assert api.wait_end(int(number)).state == job_pb2.JOB_STATE_CANCELED


@pytest.mark.parametrize("args", [
    [], ["fly"], ["list", "--no-such-option"], ["show"], ["show", "banana"], ["run"], ["run", "--time", "soon", "--", "x"],
    ["run", "--memory", "lots", "--", "x"], ["run", "--env", "novalue", "--", "x"], ["list", "-o", "xml"],
    ["wait", "--timeout", "later", "1"], ["logs", "--rank", "-1", "1"]])
def test_bad_usage_is_told_apart(world, broker, args):
    done = world.cli(*args, check=False)
    assert done.returncode == USAGE, done
    assert done.stdout == ""
    assert done.stderr


def test_an_option_that_cannot_be_meant_is_usage_and_submits_nothing(world, agent):
    for args in (["run", "--nodes", "0", "--", "x"], ["run", "--name", "", "--", "x"], ["list", "--state", "bogus"],
                 ["list", "--limit", "-1"], ["run", "--memory", "512", "--", "x"], ["cancel", "1.1"]):
        done = world.cli(*args, check=False)
        assert done.returncode == USAGE, done
    assert world.cli("list", "-q").stdout == ""


def test_a_watch_from_now_on_misses_nothing_over_a_restart(world, broker, api):
    """The first message tells where "now" is, so that a client that has seen no step yet can go on from there."""
    now = next(api.watch(after=None))
    assert now.HasField("heartbeat")
    broker.restart()
    missed = submit(world, "true")
    api = world.api(broker)
    change = next(api.changes(after=now.heartbeat.sequence))
    assert str(change.job.id) == missed
    assert change.transition.job_sequence == 1


def test_who_waits_hears_why_the_job_waits(world, broker, api):
    agent = world.make_agent(config=world.machines_config(gpus={"h100": 1})).start()
    agent.kill()
    eventually(lambda: not api.connected(agent.cluster), "the broker has noticed")
    number = submit(world, "true", options=["--gpus", "h100:1"])
    waiter = world.cli_start("wait", number)
    eventually(lambda: "is QUEUED: " in waiter.errors(), "the reason is shown")
    agent.start()
    assert waiter.wait() == 0


def test_cancel_says_what_became_of_each_job(world, agent, api):
    ended = submit(world, "true")
    api.wait_end(int(ended))
    runs = submit(world, "sleep", "1000")
    api.wait_state(int(runs), job_pb2.JOB_STATE_RUNNING)
    done = world.cli("cancel", ended, runs)
    assert f"had ended already: {ended}\n" in done.stderr
    assert f"muster wait {runs}\n" in done.stderr


def test_a_run_that_does_not_exist_is_named(world, agent, api):
    number = submit(world, "true")
    api.wait_end(int(number))
    assert f"Run {number}.1" in world.cli("show", f"{number}.1").stdout
    for verb in ("show", "logs"):
        done = world.cli(verb, f"{number}.9", check=False)
        assert done.returncode == ERROR
        assert f"run {number}.9" in done.stderr or "no run 9" in done.stderr


def test_an_unknown_job_is_an_error(world, broker):
    done = world.cli("show", "4711", check=False)
    assert done.returncode == ERROR
    assert "4711" in done.stderr and done.stdout == ""


def test_no_broker_says_what_to_do(world, broker):
    broker.kill()
    done = world.cli("list", check=False)
    assert done.returncode in (ERROR, INFRASTRUCTURE)
    assert broker.address in done.stderr or str(broker.socket) in done.stderr
    done = world.cli("run", "--", "true", check=False)
    assert done.returncode in (ERROR, INFRASTRUCTURE)
    assert "--request-id" not in done.stderr, "nothing was sent, so nothing can be there twice"
    done = world.cli("list", broker=False, check=False)
    assert done.returncode in (ERROR, USAGE)
    assert "MUSTER_BROKER" in done.stderr


def test_the_users_own_broker_is_found_where_none_is_named(world, agent):
    state = {"XDG_STATE_HOME": str(world.path("xdg"))}
    (world.path("xdg") / "muster").mkdir(parents=True)
    (world.path("xdg") / "muster/broker.sock").symlink_to(world.broker.socket)
    assert world.cli("clusters", broker=False, env=state).stdout
    done = world.cli("clusters", broker=False, check=False)
    assert done.returncode == ERROR
    assert f"{world.root}/.local/state/muster/broker.sock (tried because none is named" in done.stderr


def test_the_address_comes_from_flag_then_environment_then_file(world, agent):
    folder = world.path(".config") / "muster"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"broker: {world.broker.address}\n")
    assert world.cli("clusters", broker=False).stdout
    wrong = {"MUSTER_BROKER": "unix:/nonexistent/broker.sock"}
    assert world.cli("clusters", env=wrong, check=False).returncode != OK
    assert world.cli("--broker", world.broker.address, "clusters", env=wrong).stdout

"""Jobs that run as their users on the agent's own machine, with real users, and one that tries to get at all that is not
its own."""

import os
import pathlib
import pwd

import pytest
from muster.v1 import job_pb2

from harness.api import FAILED, RUNNING, SUCCEEDED
from harness.run_as import ADA, AGENT, BOB, CARL
from harness.run_as_jobs import end_of, kill_programs, processes_of, script_file, submit, use_secrets
from harness.wait import eventually

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.environ.clear()
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(1000)
"""

# They share the files in /etc.
pytestmark = pytest.mark.xdist_group("run_as")


def test_a_job_is_its_users(run_as, world, started):
    api = world.api()
    ada = pwd.getpwnam(ADA)
    job = submit(run_as, world, ADA, "id -un; id -gn; pwd; echo $HOME $USER; umask; echo again >>/dev/stdout;"
                                     "echo model > results/model; echo $MUSTER_RUN_DIR; exit 3")
    ended = api.wait_state(job, FAILED)
    key = ended.runs[-1].run_key
    own = run_as.work / ADA / key
    assert ended.runs[-1].exit.code == 3
    assert ended.runs[-1].usage.max_rss_bytes > 0
    logs = run_as.cli(world, ADA, "logs", job).stdout.splitlines()
    for line in (ADA, str(own / "work"), f"{ada.pw_dir} {ADA}", "0022", "again", str(own)):
        assert line in logs
    assert (own / "work" / "results" / "model").stat().st_uid == ada.pw_uid
    # The records are the agent's, and out of the user's reach.
    _, agent = started
    records = agent.run_directory(key)
    assert {path.stat().st_uid for path in (records, *records.iterdir())} == {pwd.getpwnam(AGENT).pw_uid}
    assert records.stat().st_mode & 0o077 == 0 and not (records / "work").exists()
    # Its files come back.
    run_as.cli(world, ADA, "cp", f"{job}:results/model", "fetched")
    assert pathlib.Path(ada.pw_dir, "fetched").read_text() == "model\n"


def test_scripts_files_and_results_are_the_users(run_as, world, started):
    api = world.api()
    home = pathlib.Path(pwd.getpwnam(BOB).pw_dir)
    (home / "project").mkdir()
    (home / "project" / "train.sh").write_text("echo trained by $(id -un)\n")
    (home / "results").mkdir()
    (home / "job.yaml").write_text(
        "name: train\nsetup: echo set up by $(id -un)\nrun: |\n  sh train.sh\n  stat -c %U . train.sh\n"
        "  printf '{\"date\": \"1/1/2026\", \"time\": \"1:1:1\", \"status\": \"RUNNING\", \"message\": \"hi\"}' "
        "> status.json\nworkdir: project\n")
    for path in (home / "project", home / "project" / "train.sh", home / "results", home / "job.yaml"):
        os.chown(path, pwd.getpwnam(BOB).pw_uid, -1)
    job = int(run_as.cli(world, BOB, "submit", "-q", "job.yaml").stdout.split()[-1])
    api.wait_state(job, SUCCEEDED)
    logs = run_as.cli(world, BOB, "logs", job).stdout.splitlines()
    assert logs == [f"set up by {BOB}", f"trained by {BOB}", BOB, BOB]


@pytest.mark.parametrize("script, words", [
    ("exec /no/such/program", "127"), ("kill -SEGV $$", "SIGSEGV")])
def test_ends_of_programs_are_told(run_as, world, started, script, words):
    job = submit(run_as, world, ADA, script)
    failure = world.api().wait_state(job, FAILED).runs[-1].failure
    assert words in failure.message


def test_what_cannot_be_started_as_the_user_is_told(run_as, world, started):
    _, agent = started
    api = world.api()
    job = int(run_as.cli(world, ADA, "run", "-q", "--", "no-such-program").stdout.split()[-1])
    assert "no-such-program" in api.wait_state(job, FAILED).runs[-1].failure.message
    # A directory that the agent may enter, and the user may not.
    job = int(run_as.cli(world, ADA, "run", "-q", "--workdir", agent.state_dir, "--", "pwd").stdout.split()[-1])
    failure = api.wait_state(job, FAILED).runs[-1].failure
    assert str(agent.state_dir) in failure.message and "Permission denied" in failure.message


def test_a_job_waits_until_its_user_can_be_asked_for(run_as, world, started):
    del started
    asked = run_as.root / "asked"
    asked.mkdir()
    os.chown(asked, pwd.getpwnam(AGENT).pw_uid, -1)
    silent = run_as.root / "silent"
    silent.write_text(f'#!/bin/sh\n[ $# = 2 ] || {{ echo {run_as.work}; exit 0; }}\ntouch {asked}/$2\nexit 75\n')
    silent.chmod(0o755)
    silent.replace(run_as.helper)
    try:
        job = submit(run_as, world, ADA, "true")
        eventually((asked / ADA).exists, "the agent has asked")
    finally:
        run_as.install("answering", 0o4750).replace(run_as.helper)
    world.api().wait_state(job, SUCCEEDED)


def test_a_run_without_a_place_for_its_results_leaves_nothing(run_as, world, started):
    _, agent = started
    api = world.api()
    pathlib.Path(pwd.getpwnam(ADA).pw_dir, "job.yaml").write_text("run: pwd\nresults_directory: /etc/muster-it-results\n")
    job = int(run_as.cli(world, ADA, "submit", "-q", "job.yaml").stdout.split()[-1])
    failed = api.wait_state(job, FAILED)
    assert "/etc/muster-it-results" in failed.runs[-1].failure.message, failed
    for run in failed.runs:
        assert not (run_as.work / ADA / run.run_key).exists()
        assert not agent.run_directory(run.run_key).exists()


def begun(run_as, world, user, path):
    """A job whose process does all to survive, and that process."""
    script = script_file(run_as, user, STUBBORN)
    job = submit(run_as, world, user, f"rm -f {path}; python3 {script} {path}; sleep 1000")
    world.api().wait_state(job, RUNNING)
    return job, int(eventually(lambda: path.exists() and path.read_text(), "the job has begun"))


def test_a_cancel_ends_what_ignores_it_and_has_run_away(run_as, world, started):
    path = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "pid")
    job, _ = begun(run_as, world, ADA, path)
    run_as.cli(world, ADA, "cancel", job)
    end_of(ADA)
    world.api().wait_end(job)


@pytest.mark.parametrize("victim", ["muster-supervisor", "muster-run-as"])
def test_a_run_ends_with_its_supervisor_and_with_its_helper(run_as, world, started, victim):
    path = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "pid")
    job, _ = begun(run_as, world, ADA, path)
    kill_programs(run_as, victim)
    # The broker may try again; the first run is over, and so is all that it had begun.
    api = world.api()
    eventually(lambda: api.get(job).runs[0].state == job_pb2.RUN_STATE_FAILED, "the run has failed")
    run_as.cli(world, ADA, "cancel", job)
    end_of(ADA)


def test_a_run_outlives_its_agent(run_as, world, started):
    _, agent = started
    path = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "pid")
    job, process = begun(run_as, world, ADA, path)
    agent.restart()
    assert process in processes_of(ADA)
    run_as.cli(world, ADA, "cancel", job)
    world.api().wait_end(job)
    end_of(ADA)


def test_who_is_nobody_here_is_told_who_can_mend_it(run_as, world, started):
    del started
    for user in (CARL, "root"):
        if user == CARL:
            job = submit(run_as, world, CARL, "id")
        else:
            job = int(world.cli("run", "-q", "--", "id").stdout.split()[-1])
        failure = world.api().wait_state(job, FAILED).runs[-1].failure
        assert user in failure.message and "operator" in failure.remedy, failure


def test_a_map_says_who_is_who(run_as, world):
    map_file = run_as.root / "map"
    map_file.write_text(f"# people\n{CARL}: {BOB}\n*-ada: \\1-ada\nroot: root\n")
    map_file.chmod(0o644)
    run_as.start(world, config=f"run_as_map: {map_file}\n")
    api = world.api()
    for user, local in ((CARL, BOB), (ADA, ADA)):
        job = submit(run_as, world, user, "id -un")
        api.wait_state(job, SUCCEEDED)
        assert run_as.cli(world, user, "logs", job).stdout.strip() == local
    refusals = {BOB: "nobody on this cluster", "root": "as whom nothing may run"}
    for user, words in refusals.items():
        job = submit(run_as, world, BOB, "id") if user == BOB else int(world.cli("run", "-q", "--", "id").stdout.split()[-1])
        assert words in api.wait_state(job, FAILED).runs[-1].failure.message
    run_as.cli(world, CARL, "cp", "1:", "copied")
    # The map counts at each launch. Nobody is nobody, whatever it says, and a line that is none is nobody's.
    for text, message, remedy in ((f"{BOB}: nobody\n", "is root, nobody", "/etc/muster/run-as.conf"),
                                  (f"{BOB}: 0\n", "as whom nothing may run", "run_as_map"),
                                  (f"{BOB} {BOB}\n", "line 1 is not of the form", "run_as_map")):
        map_file.write_text(text)
        failure = api.wait_state(submit(run_as, world, BOB, "id"), FAILED).runs[-1].failure
        assert message in failure.message and remedy in failure.remedy and "operator" in failure.remedy, failure
    map_file.write_text(f"{BOB}: {BOB}\n")
    map_file.chmod(0o666)
    failure = api.wait_state(submit(run_as, world, BOB, "id"), FAILED).runs[-1].failure
    assert "nobody else may write" in failure.message and "run_as_map" in failure.remedy, failure


def test_an_image_is_refused_with_the_reason(run_as, world, started):
    del started
    done = run_as.cli(world, ADA, "run", "--image", "debian:12", "--", "id", check=False)
    assert done.returncode != 0 and "with run_as: user no machine runs containers" in done.stderr, done


def test_files_go_after_keep_work(run_as, world):
    _, agent = run_as.start(world)
    config = world.path("agent-box.yaml")
    config.write_text(config.read_text() + "  keep_work: 1s\n")
    agent.kill()
    agent.start()
    api = world.api()
    kept = submit(run_as, world, ADA, "mkdir -p deep/er; echo x > deep/er/file; chmod 0 deep; ln -s /etc link")
    key = api.wait_state(kept, SUCCEEDED).runs[-1].run_key
    eventually(lambda: not (run_as.work / ADA / key).exists(), "the files are gone")
    eventually(lambda: not (agent.run_directory(key) / "user").exists(), "the record is gone")
    assert pathlib.Path("/etc/passwd").exists()


CANARY = """
import glob, os, pwd, signal, sys
agent_dir, broker_dir, other_run, own_run, other_work, other_pid, other_home, helper, others = sys.argv[1:10]
bad = []
def attempt(what, call):
    try:
        call()
    except (OSError, ProcessLookupError):
        return
    bad.append(what)
def read(path):
    attempt('read ' + path, lambda: open(path, 'rb').read(1))
def write(path):
    attempt('write ' + path, lambda: open(path, 'ab').write(b'x'))
    attempt('make ' + path, lambda: os.open(path, os.O_CREAT | os.O_WRONLY))
    attempt('link ' + path, lambda: os.symlink('/etc/passwd', path))
    attempt('remove ' + path, lambda: os.unlink(path))
attempt('list ' + agent_dir, lambda: os.listdir(agent_dir))
attempt('list ' + broker_dir, lambda: os.listdir(broker_dir))
# All that the broker, the agent and the other job have, by name.
for path in open(others).read().splitlines():
    read(path)
    write(path)
for run in (other_run, own_run):
    attempt('list ' + run, lambda: os.listdir(run))
    for name in ('spec', 'stdout', 'stderr', 'user'):
        read(run + '/' + name)
    for name in ('exit', 'claim', 'cancel', 'started', 'spec'):
        write(run + '/' + name)
attempt('list ' + other_work, lambda: os.listdir(other_work))
attempt('list ' + other_home, lambda: os.listdir(other_home))
for name in ('environ', 'mem', 'maps', 'cwd/secret', 'root/etc/passwd', 'fd/1', 'auxv', 'stack'):
    read('/proc/%s/%s' % (other_pid, name))
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT):
    attempt('signal of the other', lambda: os.kill(int(other_pid), number))
uid = os.getuid()
for process in glob.glob('/proc/[0-9]*'):
    pid = int(process[6:])
    try:
        owner = int(open(process + '/status').read().split('\\nUid:\\t')[1].split()[0])
        words = open(process + '/cmdline').read().replace('\\0', ' ')
    except (OSError, IndexError):
        continue
    if owner == uid:
        continue
    if 'hush-' in words:
        bad.append('secret in the words of %d' % pid)
    read(process + '/environ')
    attempt('descriptors of %d' % pid, lambda: os.listdir(process + '/fd'))
    if 'muster' in words:
        for number in (signal.SIGCONT, signal.SIGTERM):
            attempt('signal %d: %s' % (pid, words), lambda: os.kill(pid, number))
# Its own output leads nowhere else.
attempt('read own output', lambda: open('/dev/stdout', 'rb').read(1))
attempt('work root', lambda: os.mkdir(os.path.dirname(os.path.dirname(other_work)) + '/new'))
attempt('helper', lambda: os.execv(helper, ['x', 'check']))
print('bad:', bad)
sys.exit(1 if bad else 0)
"""


def test_a_job_gets_at_nothing_that_is_not_its_own(run_as, world, started):
    broker, agent = started
    api = world.api()
    bob_home = pathlib.Path(pwd.getpwnam(BOB).pw_dir)
    bob_home.chmod(0o700)
    pid_file = bob_home / "pid"
    # Command lines are for all to see, so that its secrets are in a file.
    script = script_file(run_as, BOB, f"echo hush-file > secret; echo hush-log; echo $$ > {pid_file}; exec sleep 1000")
    secret, words = use_secrets(run_as, world, BOB)
    other = submit(run_as, world, BOB, f". {script}", "--env", "KEY=hush-variable", *words)
    api.wait_state(other, RUNNING)
    other_pid = eventually(lambda: pid_file.exists() and pid_file.read_text().strip(), "the other job runs")
    other_key = api.get(other).runs[-1].run_key
    places = (broker.state_dir, agent.state_dir, run_as.work / BOB, bob_home)
    found = [pathlib.Path(where, name) for place in places for where, _, names in os.walk(place) for name in names]
    found = [path for path in found if path != broker.state_dir / "broker.sock"]
    assert {"journal.db", "secrets.key", "spec", "secret.TOKEN_FILE", "secret"} <= {path.name for path in found}
    others = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "others")
    others.write_text("\n".join(str(path) for path in found))
    script = script_file(run_as, ADA, CANARY)
    canary = submit(
        run_as, world, ADA,
        f"exec python3 {script} {agent.state_dir} {broker.state_dir} {agent.run_directory(other_key)} "
        f"{agent.state_dir}/runs/$MUSTER_RUN_KEY {run_as.work}/{BOB}/{other_key} {other_pid} {bob_home} {run_as.helper} {others}")
    ended = api.wait_end(canary)
    said = run_as.cli(world, ADA, "logs", canary).stdout
    assert ended.state == SUCCEEDED and "bad: []" in said, said
    assert not secret.is_in(said.encode())
    # All that it was after is there, and the other job has not noticed.
    assert all(path.exists() for path in found if "db-" not in path.name)
    assert (agent.run_directory(other_key) / "spec").exists() and agent.journal.exists() and broker.database.exists()
    assert "hush-log" in run_as.cli(world, BOB, "logs", other).stdout
    assert b"KEY=hush-variable" in pathlib.Path(f"/proc/{other_pid}/environ").read_bytes()
    # Nor does Muster fetch for it what it may not read itself.
    leading = submit(run_as, world, ADA, f"ln -s {agent.journal} journal; ln -s {agent.state_dir} state")
    api.wait_state(leading, SUCCEEDED)
    for path in ("journal", "state/journal.db"):
        assert run_as.cli(world, ADA, "cp", f"{leading}:{path}", "stolen-file", check=False).returncode != 0
    assert not pathlib.Path(pwd.getpwnam(ADA).pw_dir, "stolen-file").is_file()
    run_as.cli(world, BOB, "cancel", other)
    api.wait_end(other)


def test_a_check_says_as_whom_jobs_run(run_as, world, started):
    del started
    assert "jobs run as their users" in world.cli("check", "box").stdout
    broker = world.broker
    assert broker is not None
    plain = world.make_agent(name="plain").start()
    assert "agent's user" in world.cli("check", "plain").stdout
    assert "jobs_run_as_agent" in plain.log()
    assert "jobs_run_as_agent cluster=plain" in world.broker.log()


def test_an_agent_whose_files_are_open_to_jobs_does_not_start(run_as, world, started):
    _, agent = started
    agent.kill()
    agent.state_dir.chmod(0o755)
    agent.launch()
    assert agent.wait_exit() == 1
    assert "chmod 700" in agent.log()
    agent.state_dir.chmod(0o700)
    run_as.helper.chmod(0o750)
    try:
        agent.launch()
        assert agent.wait_exit() == 1
        assert "mode 4750" in agent.log()
    finally:
        run_as.helper.chmod(0o4750)

"""Jobs that run as their users on a real Slurm, with real users, and some who try to get at what is not theirs."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from harness.api import CANCELED, FAILED, RUNNING, SUCCEEDED
from harness.fixtures import cluster_fixture
from harness.run_as import ADA, AGENT, BOB, CARL, RunAs, as_user
from harness.run_as_jobs import submit
from harness.wait import eventually
from harness.world import BROKER_CONFIG

# They share the files in /etc.
pytestmark = pytest.mark.xdist_group("run_as")

slurm = cluster_fixture("--nodes", "2", "--cpus", "8")


@pytest.fixture(scope="module")
def installation(slurm):
    made = RunAs()
    for name in (ADA, BOB):
        slurm.slurm("sacctmgr", "-i", "add", "user", name, "account=test")
    yield made
    for name in (ADA, BOB):
        slurm.slurm("scancel", "--user", name)
    made.close()


@pytest.fixture
def run_as(installation):
    installation.configure()
    yield installation


def start(run_as, world, slurm, config="", **settings):
    """Broker and agent as their user, in directories that jobs have no business in."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="s-", dir=run_as.root))
    home.chmod(0o711)
    for name, mode in (("broker", 0o711), ("agent", 0o700)):
        (home / name).mkdir(mode=mode)
        shutil.chown(home / name, AGENT, AGENT)
        (home / name).chmod(mode)
    broker = world.make_broker(state_dir=home / "broker",
                               config=BROKER_CONFIG + "socket_mode: 666\nsocket_role: submitter\n")
    broker.argv = as_user(AGENT, run_as.bin / "muster-broker", *broker.argv[1:])
    broker.start()
    agent = world.make_agent("lab", kind="slurm", state_dir=home / "agent",
                             config=f"run_as: user\n{config}{slurm.config(run_dir=run_as.work, **settings)}")
    agent.argv = as_user(AGENT, run_as.bin / "muster-agent", *agent.argv[1:])
    return broker, agent.start()


@pytest.fixture
def started(run_as, world, slurm):
    return start(run_as, world, slurm)


def logs(run_as, world, user, job):
    return run_as.cli(world, user, "logs", job).stdout


def key_of(api, job):
    return api.get(job).runs[-1].run_key


def as_slurm_user(slurm, user, *argv):
    """The output of a command of Slurm, by the user."""
    environment = dict(os.environ, SLURM_CONF=str(slurm.conf))
    done = subprocess.run(as_user(user, *argv), env=environment, cwd="/", text=True, capture_output=True, check=True)
    return done.stdout


def test_a_job_is_its_users(run_as, world, slurm, started):
    _, agent = started
    api = world.api()
    ada = pwd.getpwnam(ADA)
    job = submit(run_as, world, ADA, "id -un; id -gn; pwd; echo $HOME $USER; mkdir -p results; echo model > results/model;"
                                     "echo warned >&2; exit 3")
    ended = api.wait_state(job, FAILED)
    key = ended.runs[-1].run_key
    own = run_as.work / ADA / key
    assert ended.runs[-1].exit.code == 3
    said = logs(run_as, world, ADA, job)
    for line in (f"{ADA}\n{ADA}\n", f"{own}/work\n", f"{ada.pw_dir} {ADA}\n"):
        assert line in said
    assert b"warned" in api.stderr(job)
    # Slurm's accounting has the user; so do the files, which are closed to others.
    (number,) = slurm.job_ids(key)
    assert slurm.slurm("sacct", "-a", "-X", "-n", "-P", "-o", "User", "-j", number).split() == [ADA]
    paths = [own, *own.rglob("*")]
    assert {path.stat().st_uid for path in paths} == {ada.pw_uid}
    assert (run_as.work / ADA).stat().st_mode & 0o077 == 0 and own.stat().st_mode & 0o077 == 0
    # The agent's own directory has whose it is, and nothing of the run's.
    record = agent.state_dir / "runs" / "users" / key
    assert record.read_text() == f"{ADA} {ada.pw_uid}\n" and record.stat().st_uid == pwd.getpwnam(AGENT).pw_uid
    run_as.cli(world, ADA, "cp", f"{job}:results/model", "fetched")
    assert pathlib.Path(ada.pw_dir, "fetched").read_text() == "model\n"


def test_two_users_at_a_time(run_as, world, slurm, started):
    del slurm, started
    api = world.api()
    jobs = {user: submit(run_as, world, user, "id -un") for user in (ADA, BOB)}
    for user, job in jobs.items():
        assert api.wait_end(job).state == SUCCEEDED
        assert logs(run_as, world, user, job) == f"{user}\n"


def test_scripts_files_and_results_are_the_users(run_as, world, slurm, started):
    del slurm, started
    home = pathlib.Path(pwd.getpwnam(BOB).pw_dir)
    shutil.rmtree(home / "project", ignore_errors=True)
    (home / "project").mkdir()
    (home / "project" / "train.sh").write_text("echo trained by $(id -un)\n")
    status = '{"date": "1/1/2026", "time": "1:1:1", "status": "SUCCESS", "message": "hi"}'
    (home / "job.yaml").write_text(
        "name: train\nsetup: echo set up by $(id -un)\nworkdir: project\nstatus_json: true\n"
        f"results_directory: lustre://{home}/results\nrun: |\n  sh train.sh\n  stat -c %U . train.sh\n"
        f"  mkdir $MUSTER_RESULTS_DIR/deep\n  echo '{status}' > $MUSTER_RESULTS_DIR/deep/status.json\n")
    for path in (home / "project", home / "project" / "train.sh", home / "job.yaml"):
        shutil.chown(path, BOB, BOB)
    home.chmod(0o700)
    api = world.api()
    job = int(run_as.cli(world, BOB, "submit", "-q", "job.yaml").stdout.split()[-1])
    assert api.wait_end(job).state == SUCCEEDED, api.get(job)
    assert logs(run_as, world, BOB, job).splitlines() == [f"set up by {BOB}", f"trained by {BOB}", BOB, BOB]
    run_as.cli(world, BOB, "cp", f"{job}:results/deep/status.json", "fetched")
    assert "SUCCESS" in (home / "fetched").read_text()


def test_secrets_are_files_of_the_user_alone(run_as, world, slurm, started):
    del slurm, started
    api = world.api()
    run_as.cli(world, ADA, "secret", "set", "hf", input="hush\n")
    path = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "secret.yaml")
    path.write_text("secrets: {TOKEN: hf}\nrun: echo ${#TOKEN}; stat -c '%a %U' $MUSTER_RUN_DIR/env/secrets\n")
    path.chmod(0o644)
    job = int(run_as.cli(world, ADA, "submit", "-q", "secret.yaml").stdout.split()[-1])
    assert api.wait_end(job).state == SUCCEEDED
    assert logs(run_as, world, ADA, job) == f"4\n600 {ADA}\n"


def test_a_cancel_and_a_hold_are_the_users(run_as, world, slurm, started):
    del started
    api = world.api()
    job = submit(run_as, world, BOB, "sleep 1000", "--nodes", "2", "--cpus", "8")
    api.wait_state(job, RUNNING)
    waiting = submit(run_as, world, ADA, "true", "--nodes", "2", "--cpus", "8")
    number = eventually(lambda: api.get(waiting).runs and api.get(waiting).runs[-1].external_id, "Slurm has it")
    reason = ("squeue", "-h", "-o", "%r", "-j", number)
    run_as.cli(world, ADA, "hold", waiting)
    eventually(lambda: "JobHeldUser" in slurm.slurm(*reason), "it is held")
    run_as.cli(world, ADA, "release", waiting)
    eventually(lambda: "JobHeldUser" not in slurm.slurm(*reason), "it is released")
    run_as.cli(world, BOB, "cancel", job)
    assert api.wait_end(job).state == CANCELED
    assert api.wait_end(waiting).state == SUCCEEDED


def test_a_job_of_a_user_who_may_run_nothing_any_more_is_canceled_by_an_operator(run_as, world, slurm, started):
    _, agent = started
    api = world.api()
    job = submit(run_as, world, ADA, "sleep 1000")
    api.wait_state(job, RUNNING)
    run_as.configure(f"caller {AGENT}", f"allow-user {BOB}")
    run_as.cli(world, ADA, "cancel", job)
    eventually(lambda: "denied" in agent.log(), "the agent may not, and says so")
    slurm.slurm("sacctmgr", "-i", "add", "user", AGENT, "account=test", "adminlevel=Operator")
    try:
        assert api.wait_end(job).state == CANCELED
    finally:
        slurm.slurm("sacctmgr", "-i", "delete", "user", AGENT)


def test_an_array_is_one_of_the_users(run_as, world, slurm, started):
    _, agent = started
    api = world.api()
    script = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "array.sh")
    script.write_text("#!/bin/sh\n#SBATCH --array=1-3\necho $(id -un) $SLURM_ARRAY_TASK_ID\n")
    script.chmod(0o755)
    said = run_as.cli(world, ADA, "sbatch", "array.sh").stdout
    first = int(said.split()[-1])
    jobs = list(range(first, first + 3))
    for task, job in enumerate(jobs, 1):
        assert api.wait_end(job).state == SUCCEEDED
        assert api.stdout(job) == f"{ADA} {task}\n".encode()
    ids = {api.get(job).runs[-1].external_id for job in jobs}
    assert len({each.split("_")[0] for each in ids}) == 1, ids
    assert all(path.stat().st_uid == pwd.getpwnam(AGENT).pw_uid for path in (agent.state_dir / "runs" / "arrays").iterdir())


def test_an_agent_that_starts_anew_finds_the_users_runs(run_as, world, slurm, started):
    del slurm
    _, agent = started
    api = world.api()
    gate = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "gate")
    gate.unlink(missing_ok=True)
    job = submit(run_as, world, ADA, f"while [ ! -e {gate} ]; do sleep 0.1; done; exit 7")
    api.wait_state(job, RUNNING)
    agent.kill()
    gate.touch()
    agent.start()
    ended = api.wait_end(job)
    assert ended.state == FAILED and ended.runs[-1].exit.code == 7 and len(ended.runs) == 1


def test_who_is_nobody_here_is_told_who_can_mend_it(run_as, world, slurm):
    start(run_as, world, slurm)
    api = world.api()
    jobs = {CARL: submit(run_as, world, CARL, "id"), "root": int(world.cli("run", "-q", "--", "id").stdout.split()[-1])}
    for user, job in jobs.items():
        run = api.wait_state(job, FAILED).runs[-1]
        assert user in run.failure.message and "operator" in run.failure.remedy, run.failure
    # Slurm has no account for Carl, whom all else would let in.
    run_as.configure(f"caller {AGENT}", f"allow-user {CARL}")
    failure = api.wait_state(submit(run_as, world, CARL, "id"), FAILED).runs[-1].failure
    assert f"sacctmgr add user {CARL}" in failure.remedy, failure
    # Nobody is let in.
    run_as.helper.chmod(0o750)
    try:
        failure = api.wait_state(submit(run_as, world, ADA, "id"), FAILED).runs[-1].failure
        assert "4750" in failure.message, failure
    finally:
        run_as.helper.chmod(0o4750)


def test_a_map_says_who_is_who(run_as, world, slurm):
    map_file = run_as.root / "map"
    map_file.write_text(f"{CARL}: {BOB}\nroot: root\n{ADA}: nobody\n")
    map_file.chmod(0o644)
    start(run_as, world, slurm, config=f"run_as_map: {map_file}\n")
    api = world.api()
    job = submit(run_as, world, CARL, "id -un; echo first > file")
    assert api.wait_end(job).state == SUCCEEDED
    assert logs(run_as, world, CARL, job) == f"{BOB}\n"
    # The map may change: the run stays whose it was.
    map_file.write_text(f"{CARL}: {ADA}\n")
    job = submit(run_as, world, CARL, "echo mine > file")
    assert api.wait_end(job).state == SUCCEEDED
    run_as.cli(world, CARL, "cp", "1:file", "first")
    assert (run_as.work / ADA / key_of(api, job) / "work" / "file").exists()
    for user in (ADA, BOB):
        failure = api.wait_state(submit(run_as, world, user, "id"), FAILED).runs[-1].failure
        assert "run_as_map" in failure.message, failure


def test_a_check_says_as_whom_jobs_run(run_as, world, slurm, started):
    del run_as, slurm, started
    assert "jobs run as their users" in world.cli("check", "lab").stdout


def test_a_job_with_the_name_of_a_run_is_not_taken_for_it(run_as, world, slurm, started):
    """Nor is a name that looks like a line of squeue's about the run."""
    _, agent = started
    api = world.api()
    blocker = submit(run_as, world, ADA, "sleep 1000", "--nodes", "2", "--cpus", "6")
    api.wait_state(blocker, RUNNING)
    job = submit(run_as, world, BOB, "true", "--nodes", "2", "--cpus", "8")
    number = eventually(lambda: api.get(job).runs and api.get(job).runs[-1].external_id, "Slurm has it")
    key = key_of(api, job)
    agent.kill()
    slurm.slurm("scancel", number)
    eventually(lambda: number not in slurm.slurm("squeue", "-h", "-t", "all", "-o", "%i").split(), "squeue has forgotten it")
    line = "\x1f".join([number, "N/A", key, "RUNNING", "None", "n1", "1", "1", "1", "0", "a", "a", "a",
                        str(pwd.getpwnam(BOB).pw_uid)])
    forged = [as_slurm_user(slurm, ADA, "sbatch", "--parsable", "-o", "/dev/null", f"--job-name={name}", "--wrap=sleep 1000").strip()
              for name in (key, f"x\n{line}")]
    for each in forged:
        eventually(lambda each=each: slurm.slurm("squeue", "-h", "-o", "%T", "-j", each).strip() == "RUNNING", "it runs")
    agent.start()
    ended = api.wait_end(job)
    assert ended.state == CANCELED and ended.runs[-1].external_id == number
    slurm.slurm("scancel", "--user", ADA)
    api.wait_end(blocker)


def test_a_user_cannot_write_a_success(run_as, world, slurm, started):
    """An exit record is in reach of the run's programs: Slurm's own word counts."""
    del started
    api = world.api()
    record = ("job=$SLURM_JOB_ID restart=0\\nphase=command problem=none pulled=0\\ncode=0 signal=0 terminated=0 continued=0 "
              "rank=0\\nstart=1 end=2\\nnodes=n1\\ncause=none about=\\ncomplete\\n")
    # The batch script goes first, so that it writes none of its own.
    job = submit(run_as, world, ADA, f"printf \"{record}\" > ${{MUSTER_RUN_DIR%/*}}/ended/$MUSTER_RUN_KEY; echo written; "
                                     "kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat)")
    ended = api.wait_end(job)
    assert ended.state == FAILED and b"written" in api.stdout(job)


CANARY = """
import glob, os, signal, sys
agent_dir, broker_dir, other_run, other_record, other_home, other_pid, helper, areas, array_dir, others = sys.argv[1:11]
bad = []
def attempt(what, call):
    try:
        call()
    except OSError:
        return
    bad.append(what)
def read(path):
    attempt('read ' + path, lambda: open(path, 'rb').read(1))
def write(path):
    attempt('write ' + path, lambda: open(path, 'ab').write(b'x'))
    attempt('make ' + path, lambda: os.open(path, os.O_CREAT | os.O_WRONLY))
    attempt('link ' + path, lambda: os.symlink('/etc/passwd', path))
    attempt('remove ' + path, lambda: os.unlink(path))
for directory in (agent_dir, broker_dir, other_run, os.path.dirname(other_record), other_home, array_dir):
    attempt('list ' + directory, lambda: os.listdir(directory))
# All that the broker, the agent and the other user have, by name.
for path in open(others).read().splitlines():
    read(path)
    write(path)
write(other_record)
attempt('area', lambda: os.mkdir(areas + '/new'))
attempt('area of other', lambda: os.rename(os.path.dirname(other_run), areas + '/gone'))
read('/proc/%s/environ' % other_pid)
attempt('kill other', lambda: os.kill(int(other_pid), signal.SIGKILL))
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
    if 'muster' in words:
        attempt('signal %d: %s' % (pid, words), lambda: os.kill(pid, signal.SIGCONT))
attempt('helper', lambda: os.execv(helper, ['x', 'check']))
print('bad:', bad)
sys.exit(1 if bad else 0)
"""


def test_a_job_gets_at_nothing_that_is_not_its_own(run_as, world, slurm, started):
    broker, agent = started
    api = world.api()
    bob_home = pathlib.Path(pwd.getpwnam(BOB).pw_dir)
    bob_home.chmod(0o700)
    pid_file = bob_home / "pid"
    pid_file.unlink(missing_ok=True)
    run_as.cli(world, BOB, "secret", "set", "hf", input="hush-secret\n")
    other = submit(run_as, world, BOB, f"echo hush-file > secret; echo hush-log; echo $$ > {pid_file}; exec sleep 1000",
                   "--env", "KEY=hush-variable", "--secret", "TOKEN=hf")
    api.wait_state(other, RUNNING)
    other_pid = eventually(lambda: pid_file.exists() and pid_file.read_text().strip(), "the other job runs")
    other_key = key_of(api, other)
    script = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "canary.py")
    script.write_text(CANARY)
    script.chmod(0o644)
    trees = (broker.state_dir, agent.state_dir, run_as.work / BOB, bob_home)
    found = [pathlib.Path(where, name) for tree in trees for where, _, names in os.walk(tree) for name in names]
    found = [path for path in found if path != broker.state_dir / "broker.sock"]
    other_run = run_as.work / BOB / other_key
    assert {other_run / name for name in ("specs/job.json", "env/environment", "env/secrets", "work/secret", "sbatch/batch.sh",
                                          "meta/run.json", "claim")} <= set(found)
    assert {broker.state_dir / name for name in ("broker.db", "secrets.db", "secrets.key", "audit.db")} <= set(found)
    assert {agent.journal, agent.state_dir / "runs" / "users" / other_key} <= set(found)
    others = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "others")
    others.write_text("\n".join(str(path) for path in found))
    others.chmod(0o644)
    places = (agent.state_dir, broker.state_dir, other_run, run_as.work / BOB / "ended" / other_key,
              bob_home, other_pid, run_as.helper, run_as.work, agent.state_dir / "runs" / "arrays", others)
    canary = submit(run_as, world, ADA, f"exec python3 {script} {' '.join(str(place) for place in places)}")
    ended = api.wait_end(canary)
    said = logs(run_as, world, ADA, canary)
    assert ended.state == SUCCEEDED and "bad: []" in said, said
    # All that it was after is there, and the other job has not noticed.
    assert all(path.exists() for path in found if "db-" not in path.name)
    assert "hush-log" in logs(run_as, world, BOB, other)
    # Nor may the user's own commands of Slurm end it, nor does Muster fetch what the user may not read.
    number = api.get(other).runs[-1].external_id
    environment = dict(os.environ, SLURM_CONF=str(slurm.conf))
    denied = subprocess.run(as_user(ADA, "scancel", number), env=environment, cwd="/", text=True, capture_output=True, check=False)
    assert "denied" in denied.stderr
    leading = submit(run_as, world, ADA, f"ln -s {agent.journal} journal; ln -s {run_as.work / BOB / other_key} other;"
                                         f"mkdir $MUSTER_RUN_DIR/meta/x; echo {agent.journal} > $MUSTER_RUN_DIR/meta/errors")
    api.wait_end(leading)
    for path in ("journal", "other/work/secret"):
        assert run_as.cli(world, ADA, "cp", f"{leading}:{path}", "stolen-file", check=False).returncode != 0
    assert not pathlib.Path(pwd.getpwnam(ADA).pw_dir, "stolen-file").is_file()
    # A directory of results of somebody else's is none.
    path = pathlib.Path(pwd.getpwnam(ADA).pw_dir, "results.yaml")
    path.write_text(f"run: true\nresults_directory: lustre://{run_as.work / BOB / other_key}/work/x\n")
    path.chmod(0o644)
    failed = int(run_as.cli(world, ADA, "submit", "-q", path).stdout.split()[-1])
    assert api.wait_end(failed).state == FAILED
    assert api.get(other).state == RUNNING
    run_as.cli(world, BOB, "cancel", other)
    api.wait_end(other)


@pytest.mark.parametrize("wrong, words", [("state", "chmod 700"), ("areas", "only root may write"), ("helper", "muster-run-as")])
def test_what_is_open_to_jobs_keeps_an_agent_from_starting(run_as, world, slurm, started, wrong, words):
    del slurm
    _, agent = started
    agent.kill()
    path, mode, kept = {"state": (agent.state_dir, 0o755, 0o700), "areas": (run_as.work, 0o777, 0o711),
                        "helper": (run_as.helper, 0o750, 0o4750)}[wrong]
    path.chmod(mode)
    try:
        agent.launch()
        eventually(lambda: words in agent.log(), "it says why")
    finally:
        path.chmod(kept)

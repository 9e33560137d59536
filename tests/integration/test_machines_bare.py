"""A machine with neither bash nor python: the agent's own, and a host that it reaches over SSH."""

import pytest

from muster.v1 import job_pb2

from harness.api import CANCELED, FAILED, SUCCEEDED, argv_spec, script_spec
from harness.files import bring
from harness.hosts import SshCluster, without_programs

LACKS = ("*bash", "python*")
CONFIG = job_pb2.FAILURE_CLASS_CONFIG
PROGRAM = job_pb2.FAILURE_CLASS_PROGRAM
CODE = {b"train.sh": b"#!/bin/sh\ncat data\n", b"data": b"1,2,3\n"}


@pytest.fixture(params=["machine", "host"])
def bare_agent(request, world, broker):
    """The agent of such a one, not started yet."""
    del broker
    if request.param == "machine":
        agent = world.make_agent()
        directory = world.path("bare")
        directory.mkdir()
        agent.argv = without_programs(directory, LACKS, agent.argv)
        agent.env = {**agent.env, "PATH": "/usr/bin:/bin"}
        yield agent
        return
    cluster = SshCluster(world, 1)
    (host,) = cluster.hosts
    host.cut()
    host.take_away(*LACKS)
    host.start()
    yield cluster.make_agent()
    cluster.close()


@pytest.fixture
def agent(bare_agent):
    return bare_agent.start()


def test_a_job_that_needs_neither_runs_among_its_files_and_can_be_canceled(api, agent):
    text = "for p in bash python3 sh; do command -v $p; done; ./train.sh"
    job_id = api.submit(bring(api, script_spec(text, setup="echo setup"), CODE, executable=[b"train.sh"]))
    api.wait_state(job_id, SUCCEEDED)
    assert api.stdout(job_id) == b"setup\n/usr/bin/sh\n1,2,3\n"
    job_id = api.submit(argv_spec("sleep", "1000"))
    api.wait_state(job_id, job_pb2.JOB_STATE_RUNNING)
    api.cancel(job_id)
    api.wait_state(job_id, CANCELED)


@pytest.mark.parametrize("spec,program", [
    (argv_spec("bash", "-c", "true"), "bash"),
    (argv_spec("/usr/bin/python3", "train.py"), "/usr/bin/python3"),
    (script_spec("#!/bin/bash\ntrue\n"), "/bin/bash"),
], ids=["in-path", "by-path", "interpreter"])
def test_a_program_that_the_machine_lacks_is_named_with_the_machine_and_the_remedy(api, agent, spec, program):
    job = api.wait_state(api.submit(spec), FAILED)
    (run,) = job.runs
    assert job.failure.failure_class == CONFIG
    assert job.failure.message.startswith("The command could not be started on rank 0 (")
    assert job.failure.message.endswith(f'): "{program}": No such file or directory')
    assert "Check the program's name, that it is installed on the machine" in job.failure.remedy
    assert len(run.nodes) == 1
    if agent.cluster == "lab":
        assert " on rank 0 (gpu1): " in job.failure.message


def test_a_script_that_needs_one_ends_with_the_shells_code_and_words(api, agent):
    job_id = api.submit(script_spec("python3 train.py"))
    job = api.wait_state(job_id, FAILED)
    assert (job.exit.code, job.failure.failure_class) == (127, PROGRAM)
    assert "if it finds no command of that name" in job.failure.remedy
    assert b"python3: not found" in api.stderr(job_id)
    job = api.wait_state(api.submit(script_spec("true", setup="python3 -m pip install torch")), FAILED)
    assert job.failure.failure_class == CONFIG
    assert "The setup script ended with exit code 127" in job.failure.message
    assert job.failure.message.endswith(", so the command was not started")
    assert "if it finds no command of that name" in job.failure.remedy


def test_a_script_with_words_of_bash_is_told_who_runs_it_and_how_bash_is_had(api, agent):
    job = api.wait_state(api.submit(script_spec("source env/bin/activate && python3 train.py")), FAILED)
    assert (job.exit.code, job.failure.failure_class) == (127, PROGRAM)
    assert "run by /bin/sh" in job.failure.remedy and "#!/bin/bash" in job.failure.remedy
    job = api.wait_state(api.submit(script_spec("true", setup="source env/bin/activate")), FAILED)
    assert "#!/bin/bash" in job.failure.remedy


def test_a_check_finds_nothing_wrong_with_it(bare_agent):
    bare_agent.argv.append("--check")
    bare_agent.launch()
    assert bare_agent.wait_exit() == 0, bare_agent.log()

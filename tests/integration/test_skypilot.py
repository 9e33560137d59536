"""SkyPilot task files, as they are, on a cluster of plain machines."""

import re

JOB_FAILED, ERROR = 10, 1

TASK = """
name: digits.v1
num_nodes: 1
resources:
  cpus: 1+
  memory: 0.125
envs:
  EPOCHS: 010          # YAML reads an octal number
  GREETING: two words
setup: |
  echo "setup of $GREETING" > prepared
  [[ -f prepared ]]    # bash
run: |
  words=(run of "$GREETING")
  cat prepared
  echo "${words[*]}, $EPOCHS epochs"
  echo "rank $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES, GPUs $SKYPILOT_NUM_GPUS_PER_NODE"
  echo "nodes $(wc -w <<< "$SKYPILOT_NODE_IPS")"
  echo "task $SKYPILOT_TASK_ID"
"""


def failing(world, code, *args):
    """Returns the standard error of the command, which must exit with that code."""
    done = world.cli(*args, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_task_runs_as_it_is_with_the_variables_that_it_expects(world, agent, api):
    done = world.cli("submit", "--wait", world.write("task.yaml", TASK))
    lines = done.stdout.splitlines()
    assert lines[:4] == ["setup of two words", "run of two words, 8 epochs", "rank 0 of 1, GPUs 0", "nodes 1"]
    assert re.fullmatch(r"task \S+-1-1", lines[4])
    spec = api.get(1).spec
    assert (spec.name, spec.nodes) == ("digits.v1", 1)
    assert (spec.resources.cpu_millis, spec.resources.memory_bytes) == (1000, 1 << 27)
    assert "ignored" not in done.stderr


def test_the_command_has_no_errexit_and_its_last_exit_code_counts(world, agent, api):
    task = world.write("task.yaml", "num_nodes: 1\nrun: |\n  false\n  echo on\n  exit 3\n")
    done = failing(world, JOB_FAILED, "submit", "--wait", task)
    assert done.stdout == "on\n"
    assert api.get(1).exit.code == 3


def test_what_means_nothing_here_is_one_remark_and_refused_when_strict(world, agent):
    text = TASK.replace("resources:", "resources:\n  use_spot: true") + "service: /health\n"
    task = world.write("task.yaml", text)
    done = world.cli("submit", "--wait", task)
    remarks = [line for line in done.stderr.splitlines() if "ignored" in line]
    assert len(remarks) == 1
    assert "resources.use_spot" in remarks[0] and "service" in remarks[0]
    done = failing(world, ERROR, "submit", "--strict", task)
    assert "task.yaml:5:13: resources.use_spot: means nothing to Muster's clusters" in done.stderr


def test_the_cluster_is_chosen_by_infra(world, agent, api):
    task = world.write("task.yaml", f"run: echo here\nresources: {{infra: ssh/{agent.cluster}}}\n")
    assert world.cli("submit", "--wait", task).stdout == "here\n"
    assert api.get(1).cluster == agent.cluster


def test_of_alternatives_one_is_taken_that_the_cluster_can_run(world, api, broker):
    world.make_agent(config=world.machines_config(gpus={"h100": 4})).start()
    text = "run: echo $SKYPILOT_NUM_GPUS_PER_NODE\nresources: {ordered: [{accelerators: A100:8}, {accelerators: H100:2}]}\n"
    done = world.cli("submit", "--wait", world.write("task.yaml", text))
    assert done.stdout == "2\n"
    assert "of 2 alternatives number 2 (H100:2) is taken: it is the first that would start at once" in done.stderr
    none = text.replace("H100:2", "V100:2")
    done = world.cli("submit", world.write("task.yaml", none), check=False)
    assert "number 1 (A100:8) is taken: no cluster that is connected can run any of them" in done.stderr
    assert "number 2 (V100:2): " in done.stderr and "V100" in done.stderr.split("number 2 (V100:2): ")[1].splitlines()[0]


def test_an_open_variable_is_asked_for_and_taken_from_the_command_line(world, agent):
    task = world.write("task.yaml", "envs: {DATA: }\nrun: echo $DATA\n")
    assert "--env DATA=VALUE" in failing(world, ERROR, "submit", task).stderr
    assert world.cli("submit", "--wait", "--env", "DATA=mine", task).stdout == "mine\n"


TELLS_ITS_SHELL = 'num_nodes: 1\nrun: |\n  echo "${BASH_VERSION:+bash} $#"\n  echo err >&2\n'


def test_a_task_is_for_bash(world, agent):
    assert world.cli("submit", "--wait", world.write("task.yaml", TELLS_ITS_SHELL)).stdout == "bash 0\nerr\n"


def test_a_task_is_for_sh_where_there_is_no_bash(world, agent):
    programs = world.path("programs")
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    task = world.write("bare.yaml", TELLS_ITS_SHELL + f"envs: {{PATH: {programs}}}\n")
    assert world.cli("submit", "--wait", task).stdout == " 0\nerr\n"


def test_a_file_that_either_could_have_written_is_read_as_it_is_told(world, agent):
    text = "run: '[[ a == b* ]] || echo done'\nresources: {memory: 64MB}\n"
    file = world.write("either.yaml", text)
    done = world.cli("submit", "--as", "sky", "--wait", file)
    assert done.stdout == "done\n" and "--as" not in done.stderr
    done = world.cli("submit", "-o", "jsonl", file)
    assert "either.yaml: read as a Muster job file, because none of its fields tells; as a SkyPilot task" in done.stderr
    assert "memory is 61Mi in a job file and 64Mi in a task; run needs bash" in done.stderr
    assert "--as" not in world.cli("submit", "--as", "muster", file).stderr
    assert "is not muster or sky" in world.cli("submit", "--as", "slurm", file, check=False).stderr

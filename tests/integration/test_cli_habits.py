"""Command-line habits against a real broker: many jobs at once with a question, several files, first job files and
their schema, and the overview."""

import json
import os
import pty
import re
import select
import subprocess

import jsonschema
import pytest
import yaml

from harness.daemons import BIN
from test_docs import REPOSITORY, of_kind

ANSWER_S = 60


class Terminal:
    """A command whose three standard streams are a terminal."""

    def __init__(self, world, *args):
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            environment = {**world._environment(), "MUSTER_BROKER": world.broker.address, "TERM": "xterm"}
            os.execve(BIN / "muster", ["muster", *(str(arg) for arg in args)], environment)
        self.seen = ""

    def await_text(self, pattern):
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([self.end], [], [], ANSWER_S)
            assert ready, f"no {pattern!r} in {self.seen!r}"
            self.seen += os.read(self.end, 65536).decode(errors="replace")

    def type(self, text):
        os.write(self.end, text.encode())

    def finish(self):
        """The exit code, after all that it had to say."""
        try:
            while piece := os.read(self.end, 65536):
                self.seen += piece.decode(errors="replace")
        except OSError:
            pass  # EIO: the other end is closed
        os.close(self.end)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self):
        os.kill(self.pid, 2)
        self.finish()


def submit_many(world, count):
    """Jobs that wait, of two files in a directory."""
    directory = world.path("sweep")
    directory.mkdir()
    half = count // 2
    for name, jobs in (("a.yaml", half), ("b.yml", count - half)):
        (directory / name).write_text("---\n".join(f"name: {name}\nrun: 'true'\n" for _ in range(jobs)))
    (directory / "notes.txt").write_text("no job\n")
    return world.cli("submit", "--hold", "-q", directory, timeout_s=300).stdout.split()


def test_files_and_directories_are_one_submission(world, broker, api):
    world.write("last.yaml", "name: last\nrun: 'true'\n")
    directory = world.path("sweep")
    directory.mkdir()
    (directory / "b.yaml").write_text("name: b\nrun: 'true'\n---\nname: c\nrun: 'true'\n")
    (directory / "a.json").write_text('{"name": "a", "run": "true"}')
    numbers = world.cli("submit", "-q", "sweep", "last.yaml").stdout.split()
    assert [api.get(int(number)).name for number in numbers] == ["a", "b", "c", "last"]
    (directory / "z.yaml").write_text("name: z\nrnu: 'true'\n")
    done = world.cli("submit", "sweep", "last.yaml", check=False)
    assert done.returncode != 0 and "sweep/z.yaml:2:1" in done.stderr
    assert len(world.cli("list", "-q").stdout.split()) == 4, "none of them"
    world.path("empty").mkdir()
    done = world.cli("submit", "empty", check=False)
    assert "empty: has no file that ends with .yaml, .yml or .json" in done.stderr


def test_names_may_begin_with_a_dash_behind_two_dashes(world, broker, api):
    world.write("-sweep.yaml", "name: dash\nrun: 'true'\n")
    assert world.cli("submit", "-sweep.yaml", check=False).returncode == 2
    number = world.cli("submit", "-q", "--hold", "--", "-sweep.yaml").stdout.strip()
    assert api.get(int(number)).name == "dash"
    done = world.cli("init", "--", "-first.yaml")
    assert done.stderr.endswith("muster submit --wait -- -first.yaml\n")
    world.cli("submit", "--validate", "--", "-first.yaml", "-sweep.yaml")
    assert "dash" in world.cli("show", "--", number).stdout
    # Behind run's dashes is a command, with dashes of its own.
    number = world.cli("run", "-q", "--hold", "--", "submit", "--", "-x").stdout.strip()
    assert list(api.get(int(number)).spec.command.argv.args) == ["submit", "--", "-x"]


def test_a_refusal_names_the_file_of_several(world, broker):
    world.write("a.yaml", "run: 'true'\n")
    world.write("b.yaml", "run: 'true'\ncluster: nowhere\n")
    done = world.cli("submit", "a.yaml", "b.yaml", check=False)
    assert done.returncode == 13 and "b.yaml:1:1" in done.stderr


def test_a_range_of_numbers(world, broker, api):
    numbers = [world.cli("run", "-q", "--hold", "--", "true").stdout.strip() for _ in range(4)]
    world.cli("cancel", f"{numbers[0]}-{numbers[2]}")
    states = world.cli("list", "-o", "template={{.id}} {{.state}}", "--order-by", "id").stdout.split("\n")[:4]
    assert [state.split()[1] for state in states] == ["CANCELED"] * 3 + ["QUEUED"]
    done = world.cli("cancel", f"{numbers[0]}[1-2]", check=False)
    assert done.returncode == 2 and "for tasks of the array" in done.stderr and "in a row" in done.stderr
    for odd in ("7-3", "0-3", "1-20000", "3-"):
        assert world.cli("cancel", odd, check=False).returncode == 2


def test_more_than_a_thousand_jobs_change_after_a_question(world, broker):
    numbers = submit_many(world, 1002)
    assert len(numbers) == 1002
    terminal = Terminal(world, "cancel", "--filter", "id > 0")
    terminal.await_text(r"cancel 1002 jobs\? \[y/N\]")
    terminal.type("n\n")
    assert terminal.finish() == 1 and "nothing was changed" in terminal.seen
    assert world.cli("count", "-q", "--filter", "state = QUEUED").stdout == "1002\n"
    terminal = Terminal(world, "cancel", "-q", f"{numbers[0]}-{numbers[-1]}")
    terminal.await_text(r"cancel 1002 jobs\? \[y/N\]")
    terminal.type("y\n")
    assert terminal.finish() == 0
    assert world.cli("count", "-q", "--filter", "state = CANCELED").stdout == "1002\n"
    # A script that does not say that it means it gets no thousands of jobs.
    done = world.cli("rerun", "--filter", "state = CANCELED", check=False)
    assert done.returncode == 1 and "add: --yes" in done.stderr
    done = world.cli("rerun", "--hold", "--yes", "-q", "--filter", "state = CANCELED", timeout_s=300)
    assert len(set(done.stdout.split()) - set(numbers)) == 1002
    # Few are not worth a question.
    terminal = Terminal(world, "release", "-q", "--filter", "state = QUEUED AND name = a.yaml")
    assert terminal.finish() == 0 and "?" not in terminal.seen


@pytest.mark.parametrize("kind", [None, "slurm", "kubernetes", "machines"])
def test_a_first_job_file_is_a_good_one(world, broker, kind, schema):
    world.cli("init", *(["--kind", kind] if kind else []), "first.yaml")
    world.cli("submit", "--validate", "first.yaml")
    text = world.path("first.yaml").read_text()
    # Every field that stands in a comment is one of a job file, too.
    whole = re.sub(r"^# (\w+:|  )", r"\1", text, flags=re.MULTILINE).replace("  # gpus", "  gpus")
    content = yaml.safe_load(whole)
    assert {"gpus"} <= content["resources"].keys() and "nodes" in content
    schema.validate(content)
    done = world.cli("init", "first.yaml", check=False)
    assert done.returncode == 1 and "replace it with --force" in done.stderr
    world.cli("init", "--force", "first.yaml")


@pytest.fixture(name="schema", scope="module")
def schema_fixture():
    text = subprocess.run([BIN / "muster", "schema"], check=True, capture_output=True, text=True, timeout=60).stdout
    schema = json.loads(text)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("text", of_kind("job"))
def test_a_job_file_of_the_pages_fits_the_schema(schema, text):
    for content in yaml.safe_load_all(text):
        schema.validate(content)


def test_the_schema_has_every_key_of_the_page_of_job_files(schema):
    page = REPOSITORY / "docs/job-file.md"
    definitions = schema.schema["definitions"]
    known = set(definitions["JobSpec"]["properties"])
    known |= {f"resources.{key}" for key in definitions["Resources"]["properties"]}
    fields = re.search(r"^## Fields\n(.*?)^## ", page.read_text(), re.MULTILINE | re.DOTALL)[1]
    keys = {key for row in re.findall(r"^\| (`[\w.]+`.*?) \|", fields, re.MULTILINE)
            for key in re.findall(r"`([\w.]+)`", row)}
    assert "run" in keys and keys <= known, keys - known


def test_the_schema_refuses_what_the_reader_refuses(schema):
    for good in ({"run": "true"}, {"command": ["true", 1]}, {"run": "x", "resources": {"gpus": ["H100:2", 1]}},
                 {"run": "x", "depends_on": [12, "prep", {"job": 3, "outcome": "ended"}]},
                 {"run": "x", "secrets": {"A": "b", "C": {"file": "d"}}}, {"run": "x", "on_cluster_loss": "wait"}):
        schema.validate(good)
    for bad in ({"rnu": "true"}, {"command": "true"}, {"run": ["true"]}, {"run": "x", "resources": {"cpu": 1}},
                {"run": "x", "on_cluster_loss": "never"}):
        assert not schema.is_valid(bad), bad


def test_top_shows_clusters_projects_and_jobs(world, agent):
    number = world.cli("run", "-q", "--name", "busy", "--cpus", "2", "--", "sleep", "1000").stdout.strip()
    world.cli("events", number)
    text = world.cli("top").stdout
    assert re.search(r"^CLUSTER +STATE", text, re.MULTILINE) and re.search(r"^box +CONNECTED", text, re.MULTILINE)
    assert re.search(r"^PROJECT +RUNS", text, re.MULTILINE)
    assert re.search(r"^ +JOB +NAME", text, re.MULTILINE)
    terminal = Terminal(world, "top")
    terminal.await_text(r"\x1b\[J\x1b\[H")
    terminal.kill()


def test_a_table_fits_the_terminal(world, broker):
    name = "a-name-that-is-longer-than-any-terminal-is-wide-" * 2
    number = world.cli("run", "-q", "--hold", "--name", name, "--", "true").stdout.strip()
    script = f"stty cols 80; '{BIN}/muster' list"
    controller, terminal = pty.openpty()
    process = subprocess.Popen(["sh", "-c", script], stdin=terminal, stdout=terminal, stderr=terminal,
                               env={**world._environment(), "MUSTER_BROKER": world.broker.address})
    os.close(terminal)
    seen = b""
    try:
        while piece := os.read(controller, 65536):
            seen += piece
    except OSError:
        pass  # EIO: the other end is closed
    os.close(controller)
    assert process.wait(60) == 0
    lines = seen.decode().replace("\r", "").splitlines()
    assert any(number in line and "…" in line for line in lines)
    assert max(len(line) for line in lines) <= 80
    assert name in world.cli("list").stdout, "never in a pipe"

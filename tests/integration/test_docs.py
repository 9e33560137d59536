"""The files in YAML that the pages for people show: job files and configurations are accepted, tasks are
read, settings are known."""

import pathlib
import re
import subprocess

import pytest
import yaml

from harness.canary import set_secret
from harness.daemons import BIN
from harness.impostors import make_certificate

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
PROGRAM = {"run", "command", "roles", "setup"}
# Only the settings of a daemon have these names at the top, or in a section of the same name as one of a job.
DAEMON = {"kind", "broker", "state_dir", "machines", "logs", "http", "socket_mode", "run_as", "notify", "oidc"}
# The one section that only a user's configuration has.
USER = {"sbatch"}
NO_SUCH_CLUSTER = 13


def blocks():
    for page in PAGES:
        texts = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for number, text in enumerate(texts, start=1):
            yield f"{page.name}-{number}", text


def of_kind(kind):
    return [pytest.param(text, id=place) for place, text in blocks() if kind_of(text) == kind]


def first_document(text):
    return next(yaml.safe_load_all(text))


def kind_of(text):
    content = first_document(text)
    if DAEMON & content.keys() or settings_of(content) & KEYS:
        return "settings"
    if USER & content.keys():
        return "configuration"
    if "clusters" in content:
        return "fleet"
    if all(isinstance(value, dict) and "ssh" in value for value in content.values()):
        return "hosts"
    if all(isinstance(value, dict) and "url" in value for value in content.values()):
        return "webhooks"
    return "task" if "num_nodes" in content else "job"


def settings_of(content):
    return {f"{section}.{key}" for section, keys in content.items() if isinstance(keys, dict) for key in keys}


# The tables of docs/settings.md are made from the programs; tests/lint compares them.
ALL_KEYS = set(re.findall(r"^\| `([\w.]+)` \|", (REPOSITORY / "docs/settings.md").read_text(), re.MULTILINE))
# A job's sections slurm and kubernetes have other keys, except for a few: then the rest of the block tells.
KEYS = {key for key in ALL_KEYS if key.startswith(("slurm.", "kubernetes."))} - {
    "kubernetes.namespace", "kubernetes.image_pull_secrets"}


@pytest.fixture
def home(world):
    """The files that the examples upload, in a directory that is both the current one and the home."""
    for name in ("project/requirements.txt", "datasets/small/a", "configs/large.json"):
        path = world.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    return {"HOME": str(world.root)}


@pytest.mark.parametrize("text", of_kind("job"))
def test_a_job_file_of_the_pages_is_accepted(world, broker, home, text):
    content = first_document(text)
    for use in content.get("secrets", {}).values():
        set_secret(world, "value", use["file"] if isinstance(use, dict) else use)
    path = world.write("job.yaml", text if PROGRAM & content.keys() else text + 'command: ["true"]\n')
    done = world.cli("submit", "--validate", path, env=home, check=False)
    # Cluster names are made up, too.
    assert done.returncode == 0 or (done.returncode == NO_SUCH_CLUSTER and "cluster" in content), done.stderr


@pytest.mark.parametrize("text", of_kind("task"))
def test_a_task_of_the_pages_is_read_as_one(world, broker, home, text):
    done = world.cli("submit", "--validate", world.write("task.yaml", text), env=home, check=False)
    assert done.returncode == NO_SUCH_CLUSTER, done.stderr
    assert "the job names cluster" in done.stderr


@pytest.mark.parametrize("text", of_kind("configuration"))
def test_a_users_configuration_of_the_pages_is_accepted(world, broker, text):
    world.path("muster").mkdir()
    world.write("muster/config.yaml", text)
    world.cli("list", env={"XDG_CONFIG_HOME": str(world.root)})


@pytest.mark.parametrize("text", of_kind("fleet"))
def test_a_trace_is_replayed_over_a_fleet_of_the_pages(world, text):
    trace = world.write("trace.csv", "arrival_s,run_time_s\n0,60\n")
    done = subprocess.run([BIN / "muster-replay", trace, "--fleet", world.write("fleet.yaml", text), "--json"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", of_kind("webhooks"))
def test_a_broker_starts_with_the_webhooks_of_the_pages(world, text):
    secret = world.write("secret", "0123456789abcdef0123456789abcdef\n")
    secret.chmod(0o600)
    ca_file, _ = make_certificate(world.root, "ca")
    text = re.sub(r"(secret_file: )\S+", rf"\g<1>{secret}", re.sub(r"(ca_file: )\S+", rf"\g<1>{ca_file}", text))
    world.make_broker("--notify-webhooks", world.write("webhooks.yaml", text)).start()


@pytest.mark.parametrize("text", of_kind("settings"))
def test_settings_of_the_pages_are_known(text):
    content = yaml.safe_load(text)
    keys = settings_of(content) | {key for key, value in content.items() if not isinstance(value, dict)}
    assert keys <= ALL_KEYS


@pytest.mark.parametrize("program", ["muster-broker", "muster-agent"])
def test_every_setting_of_a_daemon_is_on_the_page(program):
    text = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    flags = set(re.findall(r"^  (?:-\w,)?--([\w-]+)", text, re.MULTILINE)) - {"help", "version", "config", "check", "rights"}
    assert len(flags) > 20
    assert flags <= {re.sub(r"[._]", "-", key) for key in ALL_KEYS}

"""The units of deploy/systemd: systemd takes them, they give away little, and their command lines start both."""

import pathlib
import re
import subprocess

import pytest

from harness.api import SUCCEEDED, script_spec
from harness.daemons import BIN, Agent, Broker
from harness.world import BROKER_CONFIG

UNITS = pathlib.Path(__file__).parents[2] / "deploy" / "systemd"
BROKER, KUBERNETES, HOST = "muster-broker.service", "muster-agent@.service", "muster-agent-host@.service"
PROGRAMS = "/usr/local/bin"
# systemd's measure, of 100: neither of the two can shut out the network, or have a user for each start.
MOST_EXPOSED = 25
ANALYZE_S = 60


def analyze(*words):
    done = subprocess.run(["systemd-analyze", *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=ANALYZE_S)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("unit", [BROKER, KUBERNETES, HOST])
def test_systemd_knows_every_line_of_a_unit(world, unit):
    # An instance, with programs and a user that are here.
    text = (UNITS / unit).read_text().replace(PROGRAMS, str(BIN))
    text = re.sub("^(User|Group)=muster$", r"\1=root", text, flags=re.MULTILINE)
    path = world.write(unit.replace("@", "@lab"), text)
    # systemd also speaks of other units here; one that is wrong is named by its path.
    _, said = analyze("verify", "--man=no", path)
    assert path.name not in said, said


@pytest.mark.parametrize("unit", [BROKER, KUBERNETES])
def test_a_unit_gives_its_program_little(world, unit):
    path = world.write(unit.replace("@", "@lab"), (UNITS / unit).read_text())
    code, said = analyze("security", "--offline=yes", f"--threshold={MOST_EXPOSED}", path)
    assert code == 0, said


def command_of(world, unit, instance=""):
    """The words of its ExecStart, in a world's directory instead of the system's, and its state directory."""
    text = (UNITS / unit).read_text().replace("%i", instance)
    (line,) = re.findall("^ExecStart=(.*)$", text, flags=re.MULTILINE)
    (state,) = re.findall("^StateDirectory=(.*)$", text, flags=re.MULTILINE)
    assert f"--state-dir /var/lib/{state} " in line
    line = line.replace(PROGRAMS, str(BIN)).replace("/etc/muster", str(world.root))
    return line.replace("/var/lib/muster", str(world.root)).split(), world.root / pathlib.Path(state).name


@pytest.mark.parametrize("unit", [KUBERNETES, HOST])
def test_the_command_lines_start_a_broker_and_an_agent(world, unit):
    world.write("broker.yaml", BROKER_CONFIG)
    argv, state = command_of(world, BROKER)
    broker = Broker("broker", argv, state, world.path("broker.log"), None)
    world.daemons.append(broker)
    world.broker = broker
    broker.start()
    world.write("agent-lab.yaml", "kind: machines\n" + world.machines_config())
    argv, state = command_of(world, unit, "lab")
    agent = Agent("lab", broker, world.api(), "agent-lab", argv, state, world.path("agent-lab.log"), None)
    world.daemons.append(agent)
    agent.start()
    world.api().wait_state(world.api().submit(script_spec("true")), SUCCEEDED)

"""Who speaks as an agent without a certificate: agents that run as another user than the broker."""

import os
import pwd

import pytest

from harness.api import SUCCEEDED, argv_spec
from harness.wait import eventually

OTHER = "nobody"


@pytest.fixture
def others_agent(world):
    """The agent of another user, who can reach the socket; `config` is the broker's."""
    def start(config):
        world.path("broker").mkdir(mode=0o755)
        world.make_broker(config=f'socket_mode: "0666"\nheartbeat_interval: 3s\n{config}').start()
        user = pwd.getpwnam(OTHER)
        agent = world.make_agent()
        agent.state_dir.mkdir()
        os.chown(agent.state_dir, user.pw_uid, user.pw_gid)
        agent.argv[:0] = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        return agent
    return start


@pytest.mark.parametrize("config", ["", "socket_role: admin\n", "agent_users: [ada, nobody]\n",
                                    "agent_users: [nobody]\nsocket_role: none\n"])
def test_an_agent_of_another_user_needs_a_right(world, others_agent, config):
    agent = others_agent(config)
    if not config:
        agent.launch()
        eventually(lambda: "nobody may not speak as the agent of a cluster here" in agent.log(), "it is told why")
        assert "agent_users" in agent.log()
        assert world.cli_json("clusters").get("clusters", []) == []
        return
    agent.start()
    job = world.api().submit(argv_spec("/bin/true"))
    assert world.api().wait_end(job).state == SUCCEEDED

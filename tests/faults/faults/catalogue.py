"""All faults by name."""

import traceback

from faults.agent import (agent_killed_at_every_side_effect, hosts_agent_killed_as_it_lays_files_out,
                          hosts_agent_killed_at_every_side_effect, kubernetes_agent_killed_as_it_brings_files,
                          kubernetes_agent_killed_at_every_side_effect, kueue_agent_killed_at_every_side_effect,
                          machines_agent_killed_as_it_lays_files_out, machines_agent_killed_at_every_side_effect)
from faults.daemons import login_host_swapped, slurmctld_killed, slurmdbd_down
from faults.ids import job_id_reused
from faults.kube_control_plane import etcd_paused, kube_apiserver_killed, kube_storm_of_429
from faults.kube_nodes import kube_node_frozen
from faults.kube_way import kube_watch_cut, kube_watch_expired, kubernetes_token_expired
from faults.replies import sbatch_reply_lost
from faults.toll import Toll

REPEAT = 50
FAULTS = {function.__name__: function for function in (
    sbatch_reply_lost, slurmctld_killed, slurmdbd_down, login_host_swapped, agent_killed_at_every_side_effect,
    job_id_reused, kube_apiserver_killed, etcd_paused, kube_watch_cut, kube_watch_expired, kube_storm_of_429, kube_node_frozen,
    kubernetes_agent_killed_at_every_side_effect, kubernetes_agent_killed_as_it_brings_files,
    kueue_agent_killed_at_every_side_effect, kubernetes_token_expired, machines_agent_killed_at_every_side_effect,
    hosts_agent_killed_at_every_side_effect, machines_agent_killed_as_it_lays_files_out,
    hosts_agent_killed_as_it_lays_files_out)}


def listing():
    """Returns the list for --help."""
    return "\n".join(f"{name:46}{function.__doc__.splitlines()[0]}" for name, function in FAULTS.items())


def strike(name, repeat=None):
    """The cost of N faults; without a number, as many as the long campaign has."""
    toll = Toll(wanted=repeat or REPEAT, is_whole=repeat is None)
    try:
        FAULTS[name](toll.wanted, toll)
    except AssertionError:
        # The counts until then are to be told, too.
        toll.wrong.append(f"{toll.moment}it did not go on: {traceback.format_exc()}")
    return toll

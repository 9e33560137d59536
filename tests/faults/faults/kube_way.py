"""The way from the agent to the API server breaks, and with it what the agent watches and who it is."""

import random

import yaml

from harness.kubernetes import KubernetesCluster
from harness.wait import eventually

from faults.holds import hold_under_way
from faults.kube_lab import open_kubernetes_lab
from faults.relay import Relay

JOBS_PER_STRIKE = 3
LONGEST_PAUSE_S = 1.0
# The server asks etcd if it has no cache; etcd forgets within seconds.
FORGETFUL = ("-arg", "kube-apiserver=--watch-cache=false", "-arg", "kube-apiserver=--etcd-compaction-interval=1s")
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
ACCOUNT = "/api/v1/namespaces/muster/serviceaccounts/muster-agent"
SECRETS = "/api/v1/namespaces/muster/secrets"


def kube_watch_cut(repeat, toll):
    """All connections to the API server break at a random moment of jobs' lives, and no new one is made for a while."""
    moments = random.Random(4)
    with _open_lab_with_relay() as lab:
        for number in range(repeat):
            with hold_under_way(lab, number) as jobs:
                jobs += lab.submit(count=JOBS_PER_STRIKE)
                lab.world.pause(moments.uniform(0, LONGEST_PAUSE_S))
                lab.cluster.relay.cut()
                toll.strikes += 1
                jobs += lab.submit()
                lab.world.pause(moments.uniform(0, LONGEST_PAUSE_S))
                lab.cluster.relay.mend()
            toll.audit(lab, jobs)


def kube_watch_expired(repeat, toll):
    """While the agent's way is cut a job ends and others begin, and etcd forgets what happened: watches go on with 410."""
    moments = random.Random(5)
    with _open_lab_with_relay(*FORGETFUL) as lab:
        for number in range(repeat):
            gate, jobs = lab.submit_running()
            with hold_under_way(lab, number) as held:
                jobs += held + lab.submit(count=JOBS_PER_STRIKE)
                lab.world.pause(moments.uniform(0, LONGEST_PAUSE_S))
                lab.cluster.relay.cut()
                jobs += lab.submit()
                version = lab.cluster.must("GET", JOBS)["metadata"]["resourceVersion"]
                gate.open()
                eventually(lambda version=version: _has_forgotten(lab.cluster, version), "etcd has forgotten")
                toll.strikes += 1
                lab.cluster.relay.mend()
            toll.audit(lab, jobs)


def kubernetes_token_expired(repeat, toll):
    """The agent's token ends while jobs begin; the file of the next one has it sooner or later."""
    with open_kubernetes_lab(prepare=_make_first_token, make_kubeconfig=_write_kubeconfig) as lab:
        for number in range(repeat):
            gate, jobs = lab.submit_running()
            old = lab.cluster.token
            # The usual way is that the next one is there before the old one ends.
            in_time = number % 2 == 0
            lab.cluster.token = BoundToken(lab.cluster)
            if in_time:
                lab.cluster.token.write()
            old.end()
            jobs += lab.submit(count=JOBS_PER_STRIKE)
            eventually(old.is_over, "the server has noticed that the token is over")
            toll.strikes += 1
            jobs += lab.submit(count=JOBS_PER_STRIKE)
            gate.open()
            if not in_time:
                lab.world.pause(LONGEST_PAUSE_S)
                lab.cluster.token.write()
            toll.audit(lab, jobs)


class BoundToken:
    """A token of the agent's account that ends with a Secret."""

    made = 0

    def __init__(self, cluster):
        self._cluster = cluster
        BoundToken.made += 1
        self._name = f"token-{BoundToken.made}"
        secret = cluster.must("POST", SECRETS, {"metadata": {"name": self._name}})
        bound = {"kind": "Secret", "apiVersion": "v1", "name": self._name, "uid": secret["metadata"]["uid"]}
        self._text = cluster.must("POST", ACCOUNT + "/token", {"spec": {"boundObjectRef": bound}})["status"]["token"]

    def write(self):
        """Into the agent's file."""
        path = _token_file(self._cluster)
        new = path.with_suffix(".new")
        new.write_text(self._text)
        new.rename(path)

    def end(self):
        """The server remembers for ten seconds that it was good."""
        self._cluster.must("DELETE", f"{SECRETS}/{self._name}")

    def is_over(self):
        return self._cluster.admin("GET", JOBS, token=self._text)[0] == 401


def _token_file(cluster):
    return cluster.root / "token"


def _make_first_token(cluster, ending):
    del ending
    cluster.least_rights_token()  # makes the account
    cluster.token = BoundToken(cluster)
    cluster.token.write()


def _write_kubeconfig(cluster):
    config = yaml.safe_load(cluster.kubeconfig_text("", "default"))
    config["users"][0]["user"] = {"tokenFile": str(_token_file(cluster))}
    return _write(cluster, config)


def _open_lab_with_relay(*options):
    return open_kubernetes_lab(*options, prepare=_start_relay, make_kubeconfig=_write_kubeconfig_of_relay)


def _start_relay(cluster, ending):
    cluster.relay = Relay(int(cluster.cluster_entry["server"].rpartition(":")[2]))
    ending.callback(cluster.relay.close)


def _write_kubeconfig_of_relay(cluster):
    config = yaml.safe_load(KubernetesCluster.least_rights_kubeconfig(cluster).read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{cluster.relay.port}"
    return _write(cluster, config)


def _write(cluster, config):
    path = cluster.root / "kubeconfig-agent"
    path.write_text(yaml.safe_dump(config))
    return path


def _has_forgotten(cluster, version):
    # Etcd compacts what was there a turn ago, if there was something since.
    cluster.must("POST", CONFIG_MAPS, {"metadata": {"name": "other"}})
    cluster.must("DELETE", CONFIG_MAPS + "/other")
    return cluster.admin("GET", f"{JOBS}?resourceVersionMatch=Exact&resourceVersion={version}")[0] == 410

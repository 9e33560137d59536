"""deploy/examples/cosmos-rl: who sits where, and that the file which it makes is a job."""

import json
import pathlib
import subprocess

import pytest
import yaml

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "examples"
OF_THE_EXAMPLE = ("--policy", "tp=4,dp_shard=4", "--rollout", "tp=2,n_init_replicas=6")
CANNOT_BE_PLACED = 13


def generate(*options, check=True):
    """Returns the generator's end."""
    return subprocess.run([EXAMPLES / "cosmos-rl", *options], capture_output=True, text=True, timeout=60, check=check)


def job(*options):
    """The job that it makes."""
    return yaml.safe_load(generate(*options).stdout)


def replicas(spec, role):
    """Each replica of a role, as Cosmos-RL reads it."""
    groups = json.loads(spec["env"][f"NODE_LAUNCH_METADATA_{role.upper()}"])
    return [replica for group in groups for replica in group["colocation"]]


def nodes_of(spec):
    """First node and nodes of each role."""
    return {role["name"]: (role["first_node"], role["nodes"]) for role in spec["roles"]}


def test_the_example_is_what_the_generator_makes():
    assert generate(*OF_THE_EXAMPLE).stdout == (EXAMPLES / "cosmos-rl.yaml").read_text(encoding="utf-8")


def test_the_example_is_a_good_job_for_a_larger_cluster(world, agent):
    done = world.cli("submit", "--validate", str(EXAMPLES / "cosmos-rl.yaml"), check=False)
    assert done.returncode == CANNOT_BE_PLACED, done.stderr
    assert "only Slurm can take it" in done.stderr


def test_a_large_replica_has_whole_nodes_and_small_ones_share_them():
    spec = job(*OF_THE_EXAMPLE)
    assert spec["nodes"] == 4
    assert nodes_of(spec) == {"controller": (0, 1), "policy": (0, 2), "rollout": (2, 2)}
    (policy,) = replicas(spec, "policy")
    assert (policy["nnode"], policy["rendezvous_node"], policy["rendezvous_port"]) == (2, 0, 29345)
    assert [(r["rendezvous_node"], r["rendezvous_port"], r["visible_gpus"]) for r in replicas(spec, "rollout")] == [
        (0, 29345, [0, 1]), (0, 29346, [2, 3]), (0, 29347, [4, 5]), (0, 29348, [6, 7]),
        (1, 29349, [0, 1]), (1, 29350, [2, 3])]


def test_all_factors_of_a_policy_replica_count():
    spec = job("--train-type", "sft", "--policy", "tp=2,pp=2,cp=2,dp_replicate=2,dp_shard=3,n_init_replicas=2")
    assert nodes_of(spec) == {"controller": (0, 1), "policy": (0, 12)}, "48 GPUs, twice, and no rollout"
    assert [r["rendezvous_node"] for r in replicas(spec, "policy")] == [0, 6]
    assert job("--train-type", "sft", "--policy", "tp=4,dp_shard=-1")["nodes"] == 1, "an open dp_shard counts as one"


def test_no_gpu_and_no_port_is_given_twice():
    for gpus in range(1, 8):
        spec = job("--train-type", "sft", "--policy", f"tp={gpus},n_init_replicas=9")
        placed = replicas(spec, "policy")
        taken = [(r["rendezvous_node"], gpu) for r in placed for gpu in r["visible_gpus"]]
        assert len(taken) == len(set(taken)) == 9 * gpus
        assert all(node < spec["nodes"] and gpu < 8 for node, gpu in taken)
        assert len({r["rendezvous_port"] for r in placed}) == 9


@pytest.mark.parametrize("options,words", [
    (("--policy", "tp=12"), "a replica of 12 GPUs does not fill nodes of 8"),
    (("--policy", "tp=0"), "policy.tp: 0 is out of range"),
    (("--rollout", "cp=2"), "rollout: cp is not known"),
    (("--policy", "tp=1024,n_init_replicas=1024"), "use at most 10000"),
])
def test_what_does_not_fit_is_named(options, words):
    done = generate(*options, check=False)
    assert done.returncode != 0
    assert words in done.stderr

"""Projects that have namespaces of their own on a real Kubernetes, whose API server enforces Pod Security there: jobs run
as their project's service account and user, and reach nothing of another project."""

import json

import grpc
import pytest
import yaml
from muster.v1 import job_pb2

from harness.api import CANCELED, FAILED, RUNNING, SUCCEEDED, script_spec
from harness.canary import Canary, has_told, program, set_secret, use, words
from harness.files import bring
from harness.fixtures import kubernetes_fixture
from harness.kubernetes import MANIFESTS
from harness.wait import eventually

kubernetes = kubernetes_fixture(nodes=2, gpus=4)

ENFORCE = "pod-security.kubernetes.io/enforce"
UIDS = {"vision": 20001, "sound": 20002}
# Asks the API server as whoever's token the container has, and as nobody: the status of each answer.
ATTACK = r"""
import json, os, pathlib, ssl, sys, urllib.request, urllib.error
tls = ssl._create_unverified_context()
token = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
tokens = {"nobody": None, **({"own": token.read_text()} if token.exists() else {})}
def ask(name, method, path, body=None):
    request = urllib.request.Request(os.environ["SERVER"] + path, method=method)
    if tokens[name]: request.add_header("Authorization", "Bearer " + tokens[name])
    if body: request.data = json.dumps(body).encode(); request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, context=tls) as answer: return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal: return refusal.code, {}
got = {}
for name in tokens:
    for path in os.environ["PATHS"].split():
        got[name + " GET " + path] = ask(name, "GET", path)[0]
    forged = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "forged"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "debian:12"}]}}}}
    got[name + " POST"] = ask(name, "POST", os.environ["JOBS"], forged)[0]
review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
who = {name: ask(name, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)[1]
       .get("status", {}).get("userInfo", {}).get("username") for name in tokens}
print(json.dumps({"got": got, "who": who, "ids": [os.getuid(), os.getgid()]}))
"""


@pytest.fixture
def homes(kubernetes):
    """The namespaces of two projects, with their service accounts and the agent's rights."""
    made = {}
    for project in UIDS:
        made[project] = kubernetes.make_namespace(**{ENFORCE: "restricted"})
        path = f"/api/v1/namespaces/{made[project]}/serviceaccounts"
        kubernetes.must("POST", path, {"metadata": {"name": "runner"}, "automountServiceAccountToken": False})
        kubernetes.least_rights_token(made[project])
    return made


def map_of(homes, more=""):
    return "".join(f"{project}: {home} service_account=runner uid={UIDS[project]}{more}\n" for project, home in homes.items())


@pytest.fixture
def make_agent(kubernetes, world, broker, homes):
    del broker

    def make(text=None, **settings):
        path = world.write("projects", text or map_of(homes))
        path.chmod(0o644)
        return kubernetes.make_least_agent(world, homes["vision"], projects=path, **settings)

    return make


@pytest.fixture
def agent(make_agent):
    return make_agent().start()


def of(project, text="true", **fields):
    return script_spec(text, project=project, **fields)


def test_jobs_are_in_the_namespace_of_their_project_as_its_account_and_user(kubernetes, agent, api, homes):
    del agent
    for project, home in homes.items():
        job_id = api.submit(of(project, "id -u; id -g; ls /var/run/secrets/kubernetes.io 2>&1 | wc -l"))
        run = api.wait_state(job_id, SUCCEEDED).runs[0]
        uid = str(UIDS[project]).encode()
        assert api.stdout(job_id).split()[:2] == [uid, uid]
        (pod,) = kubernetes.objects("pods", run.run_key, home)
        assert pod["spec"]["serviceAccountName"] == "runner"
        assert not any(volume.get("projected") for volume in pod["spec"]["volumes"]), "no token"
        (other,) = (name for name in homes.values() if name != home)
        for kind in ("jobs", "pods", "secrets"):
            assert kubernetes.objects(kind, run.run_key, home) and not kubernetes.objects(kind, run.run_key, other)


def test_files_secrets_arrays_and_several_pods_work_under_restricted(kubernetes, world, make_agent, api, homes):
    make_agent(map_of(homes) + f"default: {homes['sound']} uid=20003\n").start()
    canary = Canary()
    set_secret(world, canary.value)
    spec = use(bring(api, of("vision", program("cat data")), {b"data": b"brought\n"}))
    job_id = api.submit(spec)
    assert api.wait_end(job_id).state == SUCCEEDED
    assert api.stdout(job_id) == words(canary, "444") + b"brought\n"
    pair = api.submit(of("sound", "echo rank $MUSTER_NODE_RANK", nodes=2))
    assert api.wait_end(pair).state == SUCCEEDED
    assert [api.stdout(pair, rank=rank) for rank in range(2)] == [b"rank 0\n", b"rank 1\n"]
    path = world.write("array.sh", "#!/bin/bash\necho task $SLURM_ARRAY_TASK_ID\n")
    first = int(world.cli("sbatch", "--wait", "--parsable", "--chdir=/", "--array=0-2", path).stdout)
    assert [api.stdout(first + task) for task in range(3)] == [f"task {task}\n".encode() for task in range(3)]
    assert len(kubernetes.objects("jobs", namespace=homes["sound"])) == 4, "the pair, and the tasks of the project default"


def test_the_server_enforces_the_standard_there(kubernetes, homes):
    bare = {"metadata": {"generateName": "try-"}, "spec": {"containers": [{"name": "main", "image": "debian:12"}]}}
    status, answer = kubernetes.admin("POST", f"/api/v1/namespaces/{homes['vision']}/pods?dryRun=All", bare)
    assert status == 403 and "violates PodSecurity" in answer["message"]


@pytest.mark.parametrize("token", ["", " token=yes"])
def test_a_job_reads_nothing_of_another_project_by_the_api(kubernetes, world, make_agent, api, homes, token):
    make_agent(map_of(homes, token)).start()
    canary = Canary()
    set_secret(world, canary.value)
    victim = api.submit(use(of("sound", program("exec sleep 1000"))))
    eventually(lambda: has_told(api, victim), "it runs")
    key = api.get(victim).runs[-1].run_key
    (pod,) = kubernetes.objects("pods", key, homes["sound"])
    base = f"/api/v1/namespaces/{homes['sound']}"
    paths = ["/api/v1/secrets", "/api/v1/pods", base + "/secrets", f"{base}/secrets/{key}", base + "/pods",
             f"{base}/pods/{pod['metadata']['name']}/log", base + "/configmaps",
             f"/apis/batch/v1/namespaces/{homes['sound']}/jobs/{key}", f"/api/v1/namespaces/{homes['vision']}/secrets"]
    spec = of("vision", f"exec python3 -c '{ATTACK}'", env={
        "SERVER": kubernetes.cluster_entry["server"], "PATHS": " ".join(paths),
        "JOBS": f"/apis/batch/v1/namespaces/{homes['sound']}/jobs"})
    job_id = api.submit(spec)
    assert api.wait_end(job_id).state == SUCCEEDED, api.read_both(job_id)
    told = json.loads(api.stdout(job_id))
    assert len(told["got"]) == (len(paths) + 1) * (2 if token else 1)
    assert set(told["got"].values()) <= {401, 403}, told
    assert told["ids"] == [UIDS["vision"]] * 2
    assert told["who"].get("own") == (f"system:serviceaccount:{homes['vision']}:runner" if token else None)
    api.cancel(victim)
    api.wait_state(victim, CANCELED)
    eventually(lambda: not kubernetes.objects("secrets", key, homes["sound"]), "its Secret is gone")


def submit_fault(api, spec):
    """The words about a job that cannot run: at its submit, or of its failure."""
    try:
        job_id = api.submit(spec)
    except grpc.RpcError as refusal:
        return refusal.details()
    job = api.wait_state(job_id, FAILED)
    assert job.runs[-1].failure.failure_class == job_pb2.FAILURE_CLASS_CONFIG
    return job.runs[-1].failure.message


def test_a_job_gets_no_files_of_nodes_no_root_and_no_place_of_others(kubernetes, agent, api, homes):
    del agent
    host = of("vision")
    host.kubernetes.volumes.add(mount_path="/host", host_path="/")
    assert "host_path" in submit_fault(api, host)
    root = of("vision")
    root.kubernetes.security_context.run_as_user = 0
    assert "kubernetes.pod_security" in submit_fault(api, root)
    there = of("vision")
    there.kubernetes.namespace = homes["sound"]
    assert f"jobs of project vision are in namespace {homes['vision']}" in submit_fault(api, there)
    account = of("vision")
    account.kubernetes.service_account = "default"
    assert "service account runner" in submit_fault(api, account)
    assert not kubernetes.objects("jobs", namespace=homes["sound"])


def test_a_project_without_a_line_is_refused_with_who_can_mend_it(kubernetes, world, agent, api, homes):
    del agent
    said = submit_fault(api, of("text"))
    assert '"text" has no namespace on this cluster' in said and "its operator can add a line" in said
    assert "kubernetes.projects" in said and "text: NAMESPACE" in said
    plan = world.cli("plan", "--project", "text", "--cluster", "lab", "--", "true", check=False).stdout
    assert '"text" has no namespace on this cluster' in plan
    assert not any(kubernetes.objects("jobs", namespace=home) for home in homes.values())


def test_jobs_of_both_survive_a_restart_and_are_canceled_where_they_are(kubernetes, agent, api, homes):
    jobs = {project: api.submit(of(project, "echo one; exec sleep 1000")) for project in homes}
    for job_id in jobs.values():
        api.wait_state(job_id, RUNNING)
    agent.kill()
    agent.start()
    for project, job_id in jobs.items():
        eventually(lambda job_id=job_id: api.read_log(job_id)[0] == b"one\n", "its log is there")
        api.cancel(job_id)
        run = api.wait_state(job_id, CANCELED).runs[0]
        for kind in ("jobs", "pods", "secrets"):
            eventually(lambda kind=kind, run=run, project=project:
                       not kubernetes.objects(kind, run.run_key, homes[project]), f"its {kind} are gone")


def test_labels_that_are_forged_in_another_namespace_count_for_nothing(kubernetes, agent, api, homes):
    """Who may make Jobs and pods in the namespace of one project gives them the labels of another project's run."""
    job_id = api.submit(of("vision", "echo mine; exec sleep 1000"))
    run = api.wait_state(job_id, RUNNING).runs[-1]
    eventually(lambda: api.read_log(job_id)[0] == b"mine\n", "its log is there")
    (job,) = kubernetes.objects("jobs", run.run_key, homes["vision"])
    spec = job["spec"]
    for name in ("selector", "suspend", "manualSelector"):
        spec.pop(name, None)
    metadata = {"name": run.run_key, "labels": job["metadata"]["labels"], "annotations": job["metadata"]["annotations"]}
    pod = spec["template"]["spec"]
    pod["containers"][0]["command"] = ["/bin/sh", "-c", "echo forged; exit 7"]
    pod["containers"][0].pop("env")
    for name in ("volumeMounts", "workingDir"):
        pod["containers"][0].pop(name)
    pod.pop("volumes")
    labels = spec["template"]["metadata"]["labels"]
    spec["template"]["metadata"]["labels"] = {key: value for key, value in labels.items() if "controller-uid" not in key and
                                              "job-name" not in key}
    forged = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    path = f"/apis/batch/v1/namespaces/{homes['sound']}/jobs"
    kubernetes.must("POST", path, forged)

    def has_failed():
        return any(one["type"] == "Failed" for one in
                   kubernetes.must("GET", f"{path}/{run.run_key}")["status"].get("conditions", []))

    eventually(has_failed, "the forged Job has ended")
    agent.kill()
    agent.start()
    # News of a later run come behind those of the forged one.
    api.wait_state(api.submit(of("sound")), SUCCEEDED)
    assert api.get(job_id).state == job_pb2.JOB_STATE_RUNNING
    assert api.read_log(job_id)[0] == b"mine\n"
    api.cancel(job_id)
    api.wait_state(job_id, CANCELED)
    # The node may break the log off with the pod, which a line of Muster's says then.
    output = api.stdout(job_id)
    assert output.startswith(b"mine\n") and b"forged" not in output
    assert kubernetes.objects("jobs", run.run_key, homes["sound"]), "a cancel takes no other's Job away"


def test_a_check_says_as_whom_jobs_run_and_where(kubernetes, world, agent, homes):
    del agent
    page = world.cli("check", "lab", check=False).stdout
    for project, home in homes.items():
        assert f"{home} (service account runner, user {UIDS[project]})" in page
        assert f"Pod Security in namespace {home}" in page and f"service account runner in namespace {home}" in page
    assert "jobs run in the namespace of their project" in page
    assert "FAIL" not in page.upper().replace("0 FAILED", "")


def test_a_check_says_what_one_namespace_for_all_means(kubernetes, world, broker):
    del broker
    agent = kubernetes.make_least_agent(world, kubernetes.make_namespace()).start()
    page = world.cli("check", "lab", check=False).stdout
    assert "jobs of all projects and users share the namespace" in page and "set kubernetes.projects" in page
    assert "jobs_share_namespaces" in agent.log()


def test_a_quota_of_one_project_holds_back_no_other(kubernetes, world, agent, api, homes):
    del agent
    path = f"/api/v1/namespaces/{homes['vision']}/resourcequotas"
    kubernetes.must("POST", path, {"metadata": {"name": "small"}, "spec": {"hard": {"requests.cpu": "1"}}})
    eventually(lambda: "used" in kubernetes.must("GET", path + "/small")["status"], "the quota counts")
    eventually(lambda: "small" in world.cli("clusters", "lab").stdout, "the agent has seen it")
    two = of("sound")
    two.resources.cpu_millis = 2000
    assert api.wait_end(api.submit(two)).state == SUCCEEDED
    two.project = "vision"
    assert "quota small" in submit_fault(api, two)


def test_a_wrong_map_stops_the_agent_with_its_line(kubernetes, world, make_agent, homes):
    agent = make_agent(map_of(homes) + "text: kube-system\n")
    agent.launch()
    eventually(lambda: "line 3" in agent.log() and "kube-system" in agent.log(), "it says what is wrong")


def test_the_project_manifest_makes_what_the_map_names(kubernetes):
    text = (MANIFESTS / "project.yaml").read_text()
    things = list(yaml.safe_load_all(text.replace("PROJECT", "team-x")))
    kinds = {thing["kind"]: thing for thing in things}
    assert kinds["Namespace"]["metadata"]["labels"][ENFORCE] == "restricted"
    assert kinds["ServiceAccount"]["automountServiceAccountToken"] is False
    for thing in things:
        kubernetes.apply(thing, "team-x")
    assert kubernetes.must("GET", "/api/v1/namespaces/team-x/serviceaccounts/muster-jobs")

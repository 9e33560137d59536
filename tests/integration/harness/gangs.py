"""Jobs that need whole nodes, together or not at all, and what a cluster has made of them."""

from harness.api import script_spec


def whole_nodes(text, nodes, gpus=4):
    """A job that takes all GPUs of so many nodes."""
    spec = script_spec(text, nodes=nodes)
    spec.resources.gpus.add(count_millis=gpus * 1000)
    return spec


def pods_and_what_their_scheduler_says(kubernetes, api, job_id, namespace):
    """Returns, for the job's last run, its pods, and "True" or "False" for each of which a scheduler says whether it has
    a node."""
    pods = kubernetes.objects("pods", api.get(job_id).runs[-1].run_key, namespace)
    return pods, [one["status"] for pod in pods for one in pod["status"].get("conditions", []) if one["type"] == "PodScheduled"]

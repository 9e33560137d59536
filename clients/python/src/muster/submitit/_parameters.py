"""The parameters of submitit, and the jobs that they describe."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Dict, List, Mapping

from muster._job import Job

# Those that count on every kind of cluster, and their types.
GENERAL: Mapping[str, Any] = {"name": str, "timeout_min": int, "mem_gb": (int, float), "nodes": int, "cpus_per_task": int,
                              "gpus_per_node": int, "tasks_per_node": int, "stderr_to_stdout": bool}
# submitit's defaults.
TIMEOUT_MIN, SIGNAL_DELAY_S = 5, 90
# Options of sbatch that are fields of muster.v1.SlurmOptions by the same name.
_OPTIONS = ("partition", "account", "qos", "constraint", "comment", "exclude", "nodelist", "gres", "mail_type", "mail_user",
            "dependency", "exclusive")
# Those that mean a general parameter, and what they are called there.
_SAME = {"time": "timeout_min", "mem_gb": "mem_gb", "nodes": "nodes", "cpus_per_task": "cpus_per_task", "gpus_per_node": "gpus_per_node",
         "num_gpus": "gpus_per_node", "ntasks_per_node": "tasks_per_node", "tasks_per_node": "tasks_per_node", "job_name": "name",
         "name": "name", "timeout_min": "timeout_min"}
_OWN = ("mem", "setup", "array_parallelism", "signal_delay_s", "max_num_timeout", "additional_parameters")
SLURM = (*_OPTIONS, *_SAME, *_OWN)
MUSTER = ("job", "python")
# Parameters of this many kinds of submitit's own executors are taken, and do not count.
OTHERS = ("local", "debug")


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A job as the parameters describe it, and what is no part of its description."""

    job: Job
    python: str
    tasks_per_node: int
    array_parallelism: int


def checked(given: Mapping[str, Any]) -> Dict[str, Any]:
    """The same parameters. Raises NameError, which names those that there are; TypeError."""
    for name, value in given.items():
        prefix, _, rest = name.partition("_")
        if name in GENERAL:
            if not isinstance(value, GENERAL[name]):
                raise TypeError(f'Parameter "{name}" expected type {GENERAL[name]} (but value: "{value}")')
        elif not ((prefix == "slurm" and rest in SLURM) or (prefix == "muster" and rest in MUSTER) or (prefix in OTHERS and rest)):
            raise NameError(f"Unknown parameter '{name}'; there are {', '.join(GENERAL)}; "
                            f"{', '.join('slurm_' + one for one in SLURM)}; {', '.join('muster_' + one for one in MUSTER)}")
    if given.get("stderr_to_stdout"):
        raise NameError("Parameter 'stderr_to_stdout': Muster keeps both streams apart; muster logs shows them as one")
    return dict(given)


def chosen(parameters: Mapping[str, Any], cluster: str) -> Chosen:
    """The job of the parameters on that kind of cluster."""
    general = {name: value for name, value in parameters.items() if name in GENERAL}
    slurm = {name[len("slurm_"):]: value for name, value in parameters.items() if name.startswith("slurm_")}
    # Muster has words of its own for these two, on all clusters.
    array_parallelism, retries = slurm.pop("array_parallelism", 0), slurm.pop("max_num_timeout", None)
    if cluster != "slurm":
        slurm = {}
    else:
        slurm.setdefault("signal_delay_s", SIGNAL_DELAY_S)
    general.update({_SAME[name]: slurm.pop(name) for name in list(slurm) if name in _SAME})
    base: Job = parameters.get("muster_job") or Job()
    tasks = max(1, general.get("tasks_per_node", 1))
    described = base.replace(
        name=general.get("name", base.name), nodes=general.get("nodes", base.nodes),
        time=base.time if "timeout_min" not in general and base.time else general.get("timeout_min", TIMEOUT_MIN) * 60,
        cpus=general["cpus_per_task"] * tasks if "cpus_per_task" in general else base.cpus,
        gpus=general.get("gpus_per_node") or base.gpus, memory=_memory(general, slurm, base),
        setup="\n".join(_lines(slurm.pop("setup", []))) or base.setup, retries=retries if retries is not None else base.retries)
    if slurm:
        described = described.replace(fields={**base.fields, "slurm": {**base.fields.get("slurm", {}), **_options(slurm)}})
    return Chosen(described, parameters.get("muster_python", ""), tasks, array_parallelism)


def _memory(general: Mapping[str, Any], slurm: Dict[str, Any], base: Job) -> Any:
    text = slurm.pop("mem", None)
    if text is not None:
        # Slurm counts in 1024, whatever the unit is called; a number is of MB.
        words = str(text).upper().rstrip("B")
        return f"{words[:-1]}{words[-1]}i" if words[-1:].isalpha() else f"{words}Mi"
    return int(general["mem_gb"] * (1 << 30)) if "mem_gb" in general else base.memory


def _lines(setup: Any) -> List[str]:
    return [setup] if isinstance(setup, str) else list(setup)


def _options(slurm: Dict[str, Any]) -> Dict[str, Any]:
    made = {name: slurm[name] for name in _OPTIONS if slurm.get(name)}
    if "exclusive" in made and made["exclusive"] is not True:
        warnings.warn("slurm_exclusive is taken as True", stacklevel=4)
        made["exclusive"] = True
    if "signal_delay_s" in slurm:
        made["signal"] = f"USR2@{slurm['signal_delay_s']}"
    extra = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
             for name, value in slurm.get("additional_parameters", {}).items()]
    if extra:
        made["extra_options"] = extra
    return made

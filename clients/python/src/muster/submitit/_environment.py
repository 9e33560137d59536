"""The place of a task in its job, as submitit's JobEnvironment tells it. It runs in jobs, with nothing else of muster."""

from __future__ import annotations

import os
import socket
from typing import List, Optional

from muster.submitit._paths import JobPaths

# Variables that the program of a task sets.
LOCAL_RANK, TASKS_PER_NODE = "SUBMITIT_LOCAL_RANK", "SUBMITIT_TASKS_PER_NODE"
# Those that the job has of its submit.
FOLDER, TIMEOUT_MIN = "SUBMITIT_FOLDER", "SUBMITIT_TIMEOUT_MIN"
# Muster's variables of the meeting place, under which they are kept for TorchDistributedEnvironment.
MASTER_ADDRESS, MASTER_PORT = "SUBMITIT_MASTER_ADDR", "SUBMITIT_MASTER_PORT"


class JobEnvironment:
    """Raises RuntimeError outside of a job."""

    def __init__(self) -> None:
        if not self.activated():
            raise RuntimeError("JobEnvironment is for the functions of jobs: this process is none")
        self.cluster = os.environ.get("MUSTER_CLUSTER", "muster")

    @staticmethod
    def activated() -> bool:
        """Tells whether this process is a task of a job."""
        return LOCAL_RANK in os.environ

    @property
    def job_id(self) -> str:
        """The job's number."""
        return os.environ["MUSTER_JOB_ID"]

    @property
    def raw_job_id(self) -> str:
        """The same."""
        return self.job_id

    @property
    def array_job_id(self) -> Optional[str]:
        """None: each job of an array is a job of Muster."""
        return None

    @property
    def array_task_id(self) -> Optional[str]:
        """None."""
        return None

    @property
    def hostname(self) -> str:
        """This node's name."""
        return socket.gethostname()

    @property
    def hostnames(self) -> List[str]:
        """The addresses of all nodes, rank 0 first."""
        return os.environ.get("SKYPILOT_NODE_IPS", "").split() or [self.hostname]

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return int(os.environ.get("MUSTER_NUM_NODES", "1"))

    @property
    def node(self) -> int:
        """The rank of this node."""
        return int(os.environ.get("MUSTER_NODE_RANK", "0"))

    @property
    def num_tasks(self) -> int:
        """The number of tasks on all nodes."""
        return self.num_nodes * int(os.environ[TASKS_PER_NODE])

    @property
    def local_rank(self) -> int:
        """The rank of this task on its node."""
        return int(os.environ[LOCAL_RANK])

    @property
    def global_rank(self) -> int:
        """The rank of this task in its job."""
        return self.node * int(os.environ[TASKS_PER_NODE]) + self.local_rank

    @property
    def paths(self) -> JobPaths:
        """The paths of the job's files on the machine that submitted it."""
        return JobPaths(os.environ[FOLDER], self.job_id, self.global_rank)

    def __repr__(self) -> str:
        return (f"JobEnvironment(job_id={self.job_id}, hostname={self.hostname}, "
                f"local_rank={self.local_rank}({self.num_tasks // self.num_nodes}), node={self.node}({self.num_nodes}), "
                f"global_rank={self.global_rank}({self.num_tasks}))")

"""dask_cluster.py - a Dask cluster whose workers are jobs, and a computation on it."""

import os
import sys

import muster
import muster.aio
from distributed import Client
from distributed.deploy.spec import ProcessInterface, SpecCluster
from distributed.scheduler import Scheduler


class MusterWorker(ProcessInterface):
    """A worker. It ends with its job, and the job with it."""

    def __init__(self, scheduler, name=None, job=None, python="python3", threads=1, **options):
        super().__init__(scheduler=scheduler, name=name, **options)
        self._client = self._handle = None
        # --no-nanny: a worker that dies ends its job, which Muster tells of.
        self._job = job.replace(name=f"dask-worker-{name}", command=[
            python, "-m", "distributed.cli.dask_worker", scheduler, "--name", str(name), "--nthreads", str(threads), "--no-nanny",
            "--death-timeout", "60"])

    async def start(self):
        self._client = muster.aio.AsyncClient()
        self._handle = await self._client.submit(self._job)
        await super().start()

    async def close(self):
        # After a start that failed there is no job, or no client.
        if self._handle is not None:
            await self._handle.cancel(reason="the Dask cluster let it go")
        if self._client is not None:
            await self._client.close()
        await super().close()


class MusterCluster(SpecCluster):
    """`workers` jobs that `job` describes. `host` is an address of this machine that the nodes of the clusters reach."""

    def __init__(self, workers=0, *, job=None, python="python3", threads=1, host="127.0.0.1", **options):
        worker = {"cls": MusterWorker, "options": {"job": job or muster.Job(), "python": python, "threads": threads}}
        scheduler = {"cls": Scheduler, "options": {"host": host, "dashboard_address": None}}
        super().__init__(workers={n: worker for n in range(workers)}, scheduler=scheduler, worker=worker, **options)


def main(python):
    with MusterCluster(workers=2, job=muster.Job(cpus=1, time="10m"), python=python) as cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        print("sum", client.submit(sum, client.map(lambda n: n * n, range(100))).result())
        cluster.scale(3)
        client.wait_for_workers(3, timeout=120)
        print("workers", len(client.run(os.getpid)))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "python3")

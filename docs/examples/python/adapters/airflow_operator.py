"""airflow_operator.py - an operator of Airflow 2.10 whose tasks are jobs, and a DAG that uses it.

The task waits in the triggerer, where thousands take no worker. Its try is the request id of the job, so that a worker that dies
after the submit makes no second job. A task that is cleared or marked while it waits has its job canceled by the triggerer.
"""

import asyncio
import datetime
import uuid

import muster
import muster.aio
from airflow import DAG
from airflow.exceptions import AirflowException
from airflow.models import BaseOperator, TaskInstance
from airflow.triggers.base import BaseTrigger, TriggerEvent
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState


class MusterTrigger(BaseTrigger):
    """Waits until a job has ended, across restarts of the broker and of the triggerer."""

    def __init__(self, job_id):
        super().__init__()
        self.job_id = job_id

    def serialize(self):
        return f"{type(self).__module__}.{type(self).__qualname__}", {"job_id": self.job_id}

    async def run(self):
        async with muster.aio.AsyncClient() as client:
            try:
                await client.job(self.job_id).wait()
            except asyncio.CancelledError:
                # Either the task waits no more, or this triggerer stops, and the next one waits on.
                if not await asyncio.to_thread(self._task_waits):
                    await client.cancel(self.job_id, reason="the Airflow task waits no more")
                raise
        yield TriggerEvent({"job_id": self.job_id})

    def _task_waits(self):
        with create_session() as session:
            waiting = session.query(TaskInstance).filter(
                TaskInstance.trigger_id == self.trigger_id, TaskInstance.state == TaskInstanceState.DEFERRED)
            return waiting.first() is not None


class MusterOperator(BaseOperator):
    """Runs a command as a job. `fields` are those of muster.Job: MusterOperator(task_id="a", command="make", fields={"cpus": 4})."""

    template_fields = ("command",)

    def __init__(self, command, fields=None, deferrable=True, **options):
        super().__init__(**options)
        self.command, self.fields, self.deferrable = command, fields or {}, deferrable
        self.job_id = None

    def execute(self, context):
        ti = context["ti"]
        place = f"{ti.dag_id}/{ti.task_id}/{ti.run_id}/{ti.map_index}/{ti.try_number}"
        request_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"airflow:{place}"))
        with muster.Client() as client:
            handle = client.submit(muster.Job(self.command, **{"name": ti.task_id, **self.fields}), request_id=request_id)
            self.job_id = handle.id
            self.log.info("job %s", handle.id)
            if not self.deferrable:
                handle.wait()
        if self.deferrable:
            self.defer(trigger=MusterTrigger(self.job_id), method_name="execute_complete")
        return self.execute_complete(context, {"job_id": self.job_id})

    def execute_complete(self, context, event):
        with muster.Client() as client:
            handle = client.job(event["job_id"])
            for line in handle.logs(tail=1000):
                self.log.info("%s", line)
            try:
                handle.result()
            except muster.JobError as error:
                raise AirflowException(str(error)) from error
        return event["job_id"]

    def on_kill(self):
        if self.job_id is not None:
            with muster.Client() as client:
                client.cancel(self.job_id, reason="the Airflow task was killed")


with DAG("muster_example", start_date=datetime.datetime(2026, 1, 1), schedule=None) as dag:
    train = MusterOperator(task_id="train", command="echo trained on {{ ds }}", fields={"cpus": 1, "time": "10m"})
    check = MusterOperator(task_id="check", command=["echo", "checked"], fields={"cpus": 1}, deferrable=False)
    train >> check

if __name__ == "__main__":
    run = dag.test()
    print("the run is", run.state)
    raise SystemExit(run.state != "success")

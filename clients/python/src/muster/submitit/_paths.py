"""The files of a job in its executor's folder. It runs in jobs, with nothing else of muster."""

from __future__ import annotations

import os
import pathlib
from typing import Union


class JobPaths:
    """%j and %A are the job's number, %t is the task's, %a is 0."""

    def __init__(self, folder: Union[str, "os.PathLike[str]"], job_id: str, task_id: int = 0) -> None:
        self._folder = pathlib.Path(folder).expanduser().absolute()
        self.job_id, self.task_id = job_id, task_id

    @property
    def folder(self) -> pathlib.Path:
        """The folder of this job."""
        return self._of(str(self._folder))

    @property
    def submitted_pickle(self) -> pathlib.Path:
        """The submission."""
        return self.folder / self._of("%j_submitted.pkl")

    @property
    def checkpoint_pickle(self) -> pathlib.Path:
        """The submission that a checkpoint made for the job's next run."""
        return self.folder / self._of("%j_checkpoint.pkl")

    @property
    def result_pickle(self) -> pathlib.Path:
        """The copy of the task's outcome, once it was asked for."""
        return self.folder / self._of("%j_%t_result.pkl")

    @property
    def stdout(self) -> pathlib.Path:
        """The copy of the task's standard output, once it was asked for."""
        return self.folder / self._of("%j_%t_log.out")

    @property
    def stderr(self) -> pathlib.Path:
        """The copy of the task's standard error, once it was asked for."""
        return self.folder / self._of("%j_%t_log.err")

    def _of(self, text: str) -> pathlib.Path:
        for mark, value in (("%j", self.job_id), ("%A", self.job_id), ("%t", str(self.task_id)), ("%a", "0")):
            text = text.replace(mark, value)
        return pathlib.Path(text)

    def __repr__(self) -> str:
        return f"JobPaths({self.folder})"

"""Writes the files of a run below a directory of this machine, whatever the cluster sends.

As muster cp does: nothing is written outside of the target, links that are there are not followed, a file gets its name when
it is whole, and links are made last.
"""

from __future__ import annotations

import os
import tempfile
from typing import BinaryIO, List, Optional, Tuple

from muster._tree import fault_of_link, fault_of_path
from muster.errors import MusterError
from muster.v1 import file_tree_pb2 as trees
from muster.v1 import files_service_pb2 as files


class TreeWriter:
    """One fetch. `name` is what was asked for: it becomes target/name if the target is a directory, else the target itself."""

    def __init__(self, target: str, name: str) -> None:
        self._target, self._name = target, name
        self._root = b""
        self._file: Optional[BinaryIO] = None
        self._part, self._place, self._mode = "", b"", 0
        self._links: List[Tuple[bytes, bytes]] = []
        self._first = True
        # Files that are there and were not sent: (path, why).
        self.left_out: List[Tuple[str, str]] = []
        self.written: List[str] = []

    def take(self, piece: files.FetchFilesResponse) -> None:
        """Raises MusterError: the broker sends what no tree has; OSError."""
        kind = piece.WhichOneof("piece")
        if kind == "entry":
            self._end_file()
            self._begin(piece.entry)
        elif kind == "chunk":
            if self._file is None:
                raise MusterError("the broker sent bytes of no file")
            self._file.write(piece.chunk)
        elif kind == "left_out":
            self.left_out.append((os.fsdecode(piece.left_out.path), piece.left_out.why))

    def finish(self) -> str:
        """Ends the last file and makes the links. Returns the path of what came."""
        self._end_file()
        for place, target in self._links:
            if os.path.lexists(place):
                os.unlink(place)
            os.symlink(target, place)
        return os.fsdecode(self._root)

    def abandon(self) -> None:
        """Removes a file that is not whole."""
        if self._file is not None:
            self._file.close()
            os.unlink(self._part)
            self._file = None

    def _begin(self, entry: trees.FileTreeEntry) -> None:
        if self._first:
            self._first = False
            directory = os.path.isdir(self._target)
            whole = directory and self._name in ("", ".") and entry.kind == trees.FILE_KIND_DIRECTORY
            base = os.path.basename(self._name.rstrip("/")) or "files"
            self._root = os.fsencode(self._target if not directory or whole else os.path.join(self._target, base))
            place = self._root
        else:
            fault = fault_of_path(entry.path)
            if fault:
                raise MusterError(f"the broker sent a file that is refused: {entry.path!r} {fault}")
            place = os.path.join(self._root, entry.path)
            self._check_way(entry.path)
        if entry.kind == trees.FILE_KIND_DIRECTORY:
            if os.path.islink(place) and place != self._root:
                raise MusterError(f"{os.fsdecode(place)} is a link, and a directory is to be there; remove it")
            os.makedirs(place, exist_ok=True)
        elif entry.kind == trees.FILE_KIND_SYMLINK:
            fault = fault_of_link(entry.path, entry.link_target)
            if fault:
                raise MusterError(f"the broker sent a link that is refused: {entry.path!r} {fault}")
            self._links.append((place, entry.link_target))
        elif entry.kind == trees.FILE_KIND_FILE:
            directory_of = os.path.dirname(place) or b"."
            os.makedirs(directory_of, exist_ok=True)
            handle, self._part = tempfile.mkstemp(prefix=".muster-", dir=os.fsdecode(directory_of))
            self._file, self._place = os.fdopen(handle, "wb"), place
            self._mode = (0o700 if entry.executable else 0o600) if entry.owner_only else (0o755 if entry.executable else 0o644)

    def _check_way(self, path: bytes) -> None:
        """No directory on the way may be a link, which may lead anywhere."""
        way = self._root
        for part in path.split(b"/")[:-1]:
            way = os.path.join(way, part)
            if os.path.islink(way):
                raise MusterError(f"{os.fsdecode(way)} is a link, and a directory is to be there; remove it")

    def _end_file(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        os.chmod(self._part, self._mode)
        os.replace(self._part, self._place)
        self.written.append(os.fsdecode(self._place))

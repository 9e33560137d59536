"""Writes the files of a run below a directory of this machine, whatever the cluster sends.

As muster cp does: nothing is written outside of the target, links that are there are not followed, a file gets its name when
it is whole, and links are made last.
"""

from __future__ import annotations

import os
import tempfile
from typing import BinaryIO, Iterable, List, NamedTuple, Optional, Tuple

from muster._tree import fault_of_link, fault_of_path
from muster.errors import MusterError, TooMuch
from muster.v1 import file_tree_pb2 as trees
from muster.v1 import files_service_pb2 as files


# No program reads a longer list of left-out files, and a hostile cluster could fill the memory with one.
MAX_LEFT_OUT = 10_000


class LeftOut(NamedTuple):
    """A file that exists but was not sent."""

    path: str  # relative to what was asked for; empty: that itself
    why: str  # "is a socket"
    code: str  # "PATH_INVALID", "SPECIAL_FILE", "LINK_INVALID", "UNREADABLE"; "UNSPECIFIED": the agent is of an earlier release


class Fetched(str):
    """The path of the copy, as a string; empty if all of it was left out. `left_out` lists the files that were not sent."""

    left_out: Tuple[LeftOut, ...]

    def __new__(cls, path: str, left_out: Iterable[LeftOut] = ()) -> Fetched:
        made = super().__new__(cls, path)
        made.left_out = tuple(left_out)
        return made


def _left_out(message: files.FileLeftOut) -> LeftOut:
    try:
        code = files.FileLeftOutCode.Name(message.code)[len("FILE_LEFT_OUT_CODE_"):]
    except ValueError:
        code = str(message.code)  # of a newer agent
    return LeftOut(os.fsdecode(message.path), message.why, code)


class TreeWriter:
    """One fetch. `name` is the path that was asked for: it becomes target/name if the target is a directory, else the target."""

    def __init__(self, target: str, name: str) -> None:
        self._target, self._name = target, name
        self._root = b""
        self._file: Optional[BinaryIO] = None
        self._part, self._place, self._mode = "", b"", 0
        self._links: List[Tuple[bytes, bytes, bytes]] = []
        self._first, self._is_file = True, False
        self._left_out: List[LeftOut] = []

    def take(self, piece: files.FetchFilesResponse) -> None:
        """Raises MusterError if the broker sends an invalid tree, and OSError."""
        kind = piece.WhichOneof("piece")
        if kind == "entry":
            self._end_file()
            self._begin(piece.entry)
        elif kind == "chunk":
            if self._file is None:
                raise MusterError("the broker sent bytes of no file")
            self._file.write(piece.chunk)
        elif kind == "left_out":
            if len(self._left_out) == MAX_LEFT_OUT:
                raise TooMuch(f"more than {MAX_LEFT_OUT} files are left out; fetch a part of {self._name!r}")
            self._left_out.append(_left_out(piece.left_out))

    def finish(self) -> Fetched:
        """Ends the last file and makes the links."""
        self._end_file()
        for place, path, target in self._links:
            # A link that was made just now may be on the way to the next one.
            self._check_way(path)
            if os.path.lexists(place):
                os.unlink(place)
            os.symlink(target, place)
        return Fetched(os.fsdecode(self._root), self._left_out)

    def abandon(self) -> None:
        """Removes an incomplete file."""
        if self._file is not None:
            self._file.close()
            os.unlink(self._part)
            self._file = None

    def _begin(self, entry: trees.FileTreeEntry) -> None:
        if self._first:
            self._begin_root(entry)
            return
        fault = "comes after a file that was all that was asked for" if self._is_file else fault_of_path(entry.path)
        if fault:
            raise MusterError(f"the broker sent a file that is refused: {entry.path!r} {fault}")
        self._check_way(entry.path)
        place = os.path.join(self._root, entry.path)
        if entry.kind == trees.FILE_KIND_DIRECTORY:
            self._make_directory(place)
        elif entry.kind == trees.FILE_KIND_SYMLINK:
            fault = fault_of_link(entry.path, entry.link_target)
            if fault:
                raise MusterError(f"the broker sent a link that is refused: {entry.path!r} {fault}")
            self._links.append((place, entry.path, entry.link_target))
        elif entry.kind == trees.FILE_KIND_FILE:
            self._open(place, entry)
        else:
            raise MusterError(f"the broker sent a file that is refused: {entry.path!r} is neither a file nor a directory nor a link")

    def _begin_root(self, entry: trees.FileTreeEntry) -> None:
        """Takes the first entry, which is what was asked for: a directory or a file."""
        if entry.path:
            raise MusterError(f"the broker sent a file that is refused: {entry.path!r} comes before what was asked for")
        self._is_file = entry.kind == trees.FILE_KIND_FILE
        if not self._is_file and entry.kind != trees.FILE_KIND_DIRECTORY:
            raise MusterError(f"the broker sent a file that is refused: {self._name!r} is neither a file nor a directory")
        self._first = False
        is_whole = self._name in ("", ".") and not self._is_file
        base = os.path.basename(self._name.rstrip("/"))
        if base in ("", "."):
            base = "files"
        is_below = os.path.isdir(self._target) and not is_whole
        self._root = os.fsencode(os.path.join(self._target, base) if is_below else self._target)
        if self._is_file:
            self._open(self._root, entry)
        elif is_below:
            self._make_directory(self._root)
        else:
            os.makedirs(self._root, exist_ok=True)

    def _make_directory(self, place: bytes) -> None:
        if os.path.islink(place):
            raise MusterError(f"{os.fsdecode(place)} is a link, and a directory is to be there; remove it")
        os.makedirs(place, exist_ok=True)

    def _open(self, place: bytes, entry: trees.FileTreeEntry) -> None:
        directory = os.path.dirname(place) or b"."
        os.makedirs(directory, exist_ok=True)
        handle, self._part = tempfile.mkstemp(prefix=".muster-", dir=os.fsdecode(directory))
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

"""Makes a FileTree of a directory, by the rules of docs/files.md, like clients/cpp/uploads/local_tree.h."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
from typing import Dict, Iterator, List, Tuple, Union

from muster._ignore import Rules
from muster.errors import BadRequest, Conflict
from muster.v1 import file_tree_pb2 as trees
from muster.v1 import files_service_pb2 as files

MAX_ENTRIES = 50_000
MAX_PATH_BYTES, MAX_NAME_BYTES = 1024, 255
MAX_TREE_BYTES = 16 << 20
# A .gitignore file has at most this many bytes: people write it, or copy one of some kB from a collection.
MAX_IGNORE_FILE_BYTES = 1 << 20
CHUNK_BYTES = 262_144
# An error about too many bytes names this many files.
MAX_NAMED = 3
LEAVE_OUT = "leave it out by a .musterignore file (in the form of .gitignore)"
REMEDY = ("leave what the job does not need out by a .musterignore file (in the form of .gitignore), or keep data on the "
          "cluster's storage and name its path there")

# A file's bytes, or the path where they are.
Source = Union[bytes, str]


@dataclasses.dataclass
class LocalTree:
    """A tree that can be uploaded."""

    tree: trees.FileTree
    data: bytes  # the tree's own, a file like the others
    sha256: str  # of these
    sources: Dict[str, Source]  # by digest

    def alone(self) -> LocalTree:
        """Returns the tree's own list of files, without the files."""
        return LocalTree(trees.FileTree(), self.data, self.sha256, {self.sha256: self.data})

    def sizes(self) -> Dict[str, int]:
        """Returns the files by digest, including the tree itself."""
        found = {entry.sha256: entry.size_bytes for entry in self.tree.entries if entry.kind == trees.FILE_KIND_FILE}
        found[self.sha256] = len(self.data)
        return found


def _refused(root: str, why: str) -> BadRequest:
    return BadRequest(f"{root}: {why}", code="INVALID_ARGUMENT")


def _shown(path: bytes) -> str:
    return '"' + path.decode("utf-8", "backslashreplace") + '"'


def fault_of_path(path: bytes) -> str:
    """Returns the fault of a path of a tree; empty if it has none."""
    if not path or path.startswith(b"/") or path.endswith(b"/") or b"\0" in path:
        return "is no relative path of a file"
    if len(path) > MAX_PATH_BYTES:
        return f"has more than {MAX_PATH_BYTES} bytes"
    parts = path.split(b"/")
    if any(part in (b"", b".", b"..") for part in parts):
        return 'has an empty part, or "." or ".."'
    return f"has a part of more than {MAX_NAME_BYTES} bytes" if any(len(part) > MAX_NAME_BYTES for part in parts) else ""


def fault_of_link(path: bytes, target: bytes) -> str:
    """Returns the fault of a link, judged only by where it leads; empty if it has none."""
    if not target or len(target) > MAX_PATH_BYTES or b"\0" in target:
        return "is a link that leads nowhere"
    if target.startswith(b"/"):
        return "is a link with an absolute target; use a relative one, or " + LEAVE_OUT
    depth = path.count(b"/")
    for part in target.split(b"/"):
        depth += part not in (b"", b".", b"..")
        depth -= part == b".."
        if depth < 0:
            return "is a link that leads out of the tree; " + LEAVE_OUT
    return ""


class _Walk:
    def __init__(self, root: str, rules_above: bool) -> None:
        self._root = os.fsencode(root)
        self._name = root
        self._rules = Rules()
        self._prefix = b""  # of paths in rules: from the root of the repository to ours
        self._ignore = b".gitignore"
        self.entries: List[trees.FileTreeEntry] = []
        if os.path.isfile(os.path.join(self._root, b".skyignore")):
            self._ignore = b".skyignore"
        else:
            self._rules_of_repository(rules_above)
        self._enter(b"")

    def _add_rules(self, path: bytes, base: bytes) -> None:
        if not os.path.isfile(path):
            return
        with open(path, "rb") as file:
            text = file.read(MAX_IGNORE_FILE_BYTES + 1)
        if len(text) > MAX_IGNORE_FILE_BYTES:
            raise _refused(os.fsdecode(path), "has more than 1 MiB, which is no list of patterns")
        self._rules.add(text, base)

    def _rules_of_repository(self, rules_above: bool) -> None:
        absolute = os.path.realpath(self._root)
        repository = absolute
        while not os.path.lexists(os.path.join(repository, b".git")):
            if not rules_above or repository == b"/":
                return
            repository = os.path.dirname(repository)
        self._add_rules(os.path.join(repository, b".git/info/exclude"), b"")
        above = repository
        for part in [part for part in os.path.relpath(absolute, repository).split(b"/") if part != b"."]:
            self._add_rules(os.path.join(above, b".gitignore"), self._prefix)
            above = os.path.join(above, part)
            self._prefix += part + b"/"

    def _enter(self, path: bytes) -> None:
        """Adds the contents of a directory, whose path is empty or ends with '/'."""
        rules, entries = len(self._rules), len(self.entries)
        for name in (self._ignore, b".musterignore"):
            self._add_rules(os.path.join(self._root, path + name), self._prefix + path)
        for name in sorted(os.listdir(os.path.join(self._root, path) if path else self._root)):
            self._take(path + name, os.path.join(self._root, path + name), name)
        self._rules.shrink(rules)
        # Only an empty directory needs an entry of its own.
        if path and len(self.entries) == entries:
            self._add(path[:-1], trees.FILE_KIND_DIRECTORY)

    def _add(self, path: bytes, kind: trees.FileKind) -> trees.FileTreeEntry:
        if len(self.entries) == MAX_ENTRIES:
            raise _refused(self._name, f"has more than {MAX_ENTRIES} files, the most that a job may bring along from one "
                           f"directory; {REMEDY}")
        self.entries.append(trees.FileTreeEntry(path=path, kind=kind))
        return self.entries[-1]

    def _take(self, path: bytes, source: bytes, name: bytes) -> None:
        if name == b".git":
            return
        info = os.lstat(source)
        if self._rules.leave_out(self._prefix + path, stat.S_ISDIR(info.st_mode)):
            return
        fault = fault_of_path(path)
        if fault:
            raise _refused(self._name, f"{_shown(path)} {fault}; {REMEDY}")
        if stat.S_ISDIR(info.st_mode):
            self._enter(path + b"/")
        elif stat.S_ISLNK(info.st_mode):
            target = os.readlink(source)
            fault = fault_of_link(path, target)
            if fault:
                raise _refused(self._name, f"{_shown(path)} {fault}")
            self._add(path, trees.FILE_KIND_SYMLINK).link_target = target
        elif stat.S_ISREG(info.st_mode):
            _set_mode(self._add(path, trees.FILE_KIND_FILE), info)
        else:
            raise _refused(self._name, f"{_shown(path)} is no file, directory or link, but a device, a pipe or a socket; remove "
                           "it, or name it in a .musterignore file")


def _set_mode(entry: trees.FileTreeEntry, info: os.stat_result) -> None:
    entry.executable = bool(info.st_mode & stat.S_IXUSR)
    entry.owner_only = not info.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    entry.size_bytes = info.st_size


def _digest(path: str, entry: trees.FileTreeEntry) -> None:
    """Sets size and digest to those of the bytes read, which may be fewer than before, but never more."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while True:
            piece = file.read(CHUNK_BYTES)
            if not piece:
                break
            digest.update(piece)
            size += len(piece)
            if size > entry.size_bytes:
                raise Conflict(f"{path} has changed: it had {entry.size_bytes} bytes a moment ago and has more now", code="ABORTED")
    entry.size_bytes, entry.sha256 = size, digest.hexdigest()


def read_tree(path: str, max_bytes: int, rules_above: bool, name: str = "") -> LocalTree:
    """Reads a directory, or a file, which becomes a tree of one file `name`. Raises BadRequest, OSError, or Conflict: it changed."""
    info = os.stat(path)
    is_directory = stat.S_ISDIR(info.st_mode)
    if is_directory:
        entries = _Walk(path, rules_above).entries
    elif stat.S_ISREG(info.st_mode):
        entries = [trees.FileTreeEntry(path=os.fsencode(name or os.path.basename(path)), kind=trees.FILE_KIND_FILE)]
        _set_mode(entries[0], info)
    else:
        raise _refused(path, "is neither a file nor a directory")
    total = sum(entry.size_bytes for entry in entries)
    if total > max_bytes:
        largest = sorted(entries, key=lambda entry: -entry.size_bytes)[:MAX_NAMED]
        raise _refused(path, f"has {total} bytes of files, and {max_bytes} are the most that a job may bring along; the largest "
                       "are " + ", ".join(f"{_shown(entry.path)} ({entry.size_bytes})" for entry in largest) + f"; {REMEDY}")
    sources: Dict[str, Source] = {}
    for entry in entries:
        if entry.kind == trees.FILE_KIND_FILE:
            source = os.path.join(path, os.fsdecode(entry.path)) if is_directory else path
            _digest(source, entry)
            sources[entry.sha256] = source
    return _finish(entries, sources)


def tree_of(contents: Dict[str, bytes]) -> LocalTree:
    """Makes a tree of files in memory, given by their paths."""
    entries, sources = [], {}
    for path, data in contents.items():
        sha256 = hashlib.sha256(data).hexdigest()
        entries.append(trees.FileTreeEntry(path=path.encode(), kind=trees.FILE_KIND_FILE, size_bytes=len(data), sha256=sha256))
        sources[sha256] = data
    return _finish(entries, dict(sources))


def _finish(entries: List[trees.FileTreeEntry], sources: Dict[str, Source]) -> LocalTree:
    ordered: List[trees.FileTreeEntry] = sorted(entries, key=lambda entry: entry.path)
    tree = trees.FileTree(entries=ordered, total_bytes=sum(entry.size_bytes for entry in entries))
    data = tree.SerializeToString(deterministic=True)
    if len(data) > MAX_TREE_BYTES:
        raise BadRequest(f"the list of files has {len(data)} bytes, and {MAX_TREE_BYTES} are the most; {REMEDY}",
                         code="INVALID_ARGUMENT")
    sha256 = hashlib.sha256(data).hexdigest()
    return LocalTree(tree, data, sha256, {**sources, sha256: data})


def layout(path: str, place: str) -> Tuple[str, str]:
    """Returns the directory of an upload, and the name of a single file there. Raises ValueError: it is a path of the cluster."""
    if place.startswith(("/", "~")):
        raise ValueError(f'files: "{place}" is a place of the cluster, which all its jobs share; write a relative path, which '
                         "is one of the run's own directory")
    while place.startswith("./"):
        place = place[2:]
    place = place.rstrip("/")
    place = "" if place == "." else place
    if os.path.isdir(path):
        return place, ""
    if not place:
        raise ValueError(f"workdir: {path} is no directory of this machine; files go under Job(files=...)")
    directory, _, name = place.rpartition("/")
    return directory, name


def requests(missing: List[Tuple[str, int, Source]]) -> Iterator[files.UploadFilesRequest]:
    """Gives the messages of one upload. A file that has changed ends it with a Conflict."""
    for sha256, size, source in missing:
        yield files.UploadFilesRequest(head=files.FileHead(sha256=sha256, size_bytes=size))
        if isinstance(source, bytes):
            for at in range(0, size, CHUNK_BYTES):
                yield files.UploadFilesRequest(chunk=source[at:at + CHUNK_BYTES])
            continue
        left = size
        with open(source, "rb") as file:
            while left:
                chunk = file.read(min(left, CHUNK_BYTES))
                if not chunk:
                    raise Conflict(f"{source} has changed while it was read", code="ABORTED")
                left -= len(chunk)
                yield files.UploadFilesRequest(chunk=chunk)

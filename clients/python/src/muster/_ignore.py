"""Which files stay behind, by the rules of .gitignore files (docs/files.md). The rules of clients/cpp/uploads, in Python.

Paths are bytes, as file names are. Later patterns win over earlier ones, so files are added from the outermost inwards.
"""

from __future__ import annotations

import re
from typing import List, Optional, Pattern, Tuple

# The sets of POSIX classes among ASCII.
CLASSES = {
    b"alnum": b"0-9A-Za-z", b"alpha": b"A-Za-z", b"blank": b" \\t", b"cntrl": b"\\x00-\\x1f\\x7f", b"digit": b"0-9",
    b"graph": b"!-~", b"lower": b"a-z", b"print": b" -~", b"punct": b"!-/:-@\\[-`{-~", b"space": b" \\t-\\r", b"upper": b"A-Z",
    b"xdigit": b"0-9A-Fa-f",
}


def _byte(value: int) -> bytes:
    return b"\\x%02x" % value


def _without_trailing_spaces(line: bytes) -> bytes:
    """Removes spaces at the end, except after a backslash."""
    end = at = 0
    while at < len(line):
        if line[at:at + 1] == b"\\":
            at = min(at + 1, len(line) - 1)
            end = at + 1
        elif line[at:at + 1] != b" ":
            end = at + 1
        at += 1
    return line[:end]


def _take_byte(glob: bytes, at: int) -> Tuple[Optional[int], int]:
    if glob[at:at + 1] == b"\\":
        at += 1
    return (None, at) if at >= len(glob) else (glob[at], at + 1)


def _brackets(glob: bytes, at: int) -> Tuple[Optional[bytes], int]:
    """Returns the expression of brackets that begin at `at`; None if they do not end, so that the pattern matches nothing."""
    at += 1
    negated = glob[at:at + 1] in (b"!", b"^")
    at += negated
    members, first = b"", True
    while True:
        if at >= len(glob):
            return None, at
        if glob[at:at + 1] == b"]" and not first:
            break
        first = False
        end = glob.find(b":]", at + 2) if glob[at:at + 2] == b"[:" else -1
        if end >= 0:
            if glob[at + 2:end] not in CLASSES:
                return None, at
            members += CLASSES[glob[at + 2:end]]
            at = end + 2
            continue
        low, at = _take_byte(glob, at)
        if low is None:
            return None, at
        high: Optional[int] = low
        if at + 1 < len(glob) and glob[at:at + 1] == b"-" and glob[at + 1:at + 2] != b"]":
            high, at = _take_byte(glob, at + 1)
            if high is None:
                return None, at
        if high is not None and low <= high:
            members += _byte(low) + b"-" + _byte(high)
    if not members:
        # An empty range matches no byte, and its negation any.
        return (b"[^/]", at + 1) if negated else (None, at + 1)
    return b"(?!/)[" + (b"^" if negated else b"") + members + b"]", at + 1


def _stars(glob: bytes, at: int) -> Tuple[bytes, int]:
    """Two or more stars between slashes, or at an end, stand for any directories; elsewhere they are like one star."""
    begin = at
    while glob[at:at + 1] == b"*":
        at += 1
    after = begin == 0 or glob[begin - 1:begin] == b"/"
    last = at == len(glob)
    if at - begin < 2 or not after or not (last or glob[at:at + 1] == b"/"):
        return b"[^/]*", at
    return (b"(?s:.*)", at) if last else (b"(?s:.*/)?", at + 1)


def _expression(glob: bytes) -> Optional[bytes]:
    found, at = b"", 0
    while at < len(glob):
        one = glob[at:at + 1]
        if one == b"*":
            part, at = _stars(glob, at)
        elif one == b"?":
            part, at = b"[^/]", at + 1
        elif one == b"[":
            brackets, at = _brackets(glob, at)
            if brackets is None:
                return None
            part = brackets
        else:
            at += one == b"\\"
            if at == len(glob):
                return None
            part, at = _byte(glob[at]), at + 1
        found += part
    return found


class Rule:
    """One line of a file."""

    def __init__(self, base: bytes, line: bytes) -> None:
        line = _without_trailing_spaces(line)
        self.base = base
        self.negated = line.startswith(b"!")
        line = line[self.negated:]
        self.directories_only = line.endswith(b"/")
        if self.directories_only:
            line = line[:-1]
        self._names_only = b"/" not in line
        line = line[line.startswith(b"/"):]
        expression = _expression(line) if line else None
        # None: an empty line, or one that matches nothing.
        self._pattern: Optional[Pattern[bytes]] = None if expression is None else re.compile(expression)

    def matches(self, path: bytes, is_directory: bool) -> bool:
        """Compares a path that begins with the base."""
        if self._pattern is None or (self.directories_only and not is_directory):
            return False
        path = path[len(self.base):]
        return self._pattern.fullmatch(path.rpartition(b"/")[2] if self._names_only else path) is not None


class Rules:
    """The patterns of several files."""

    def __init__(self) -> None:
        self._rules: List[Rule] = []

    def add(self, text: bytes, base: bytes) -> None:
        """Adds the patterns of a file in the directory `base`, which is empty or ends with '/'."""
        if text.startswith(b"\xef\xbb\xbf"):
            text = text[3:]
        for line in text.split(b"\n"):
            line = line[:-1] if line.endswith(b"\r") else line
            if not line.startswith(b"#"):
                self._rules.append(Rule(base, line))

    def __len__(self) -> int:
        return len(self._rules)

    def shrink(self, count: int) -> None:
        """Leaves a directory again: all but the first rules are forgotten."""
        del self._rules[count:]

    def leave_out(self, path: bytes, is_directory: bool) -> bool:
        for rule in reversed(self._rules):
            if path.startswith(rule.base) and rule.matches(path, is_directory):
                return not rule.negated
        return False

"""Files that jobs bring along: each job has some that nobody has had before, and finds by itself that they are as they were."""

import shlex

from harness.files import bring, sha256

CHECK = b"#!/bin/sh\n" + b"# \n" * 1000


class Bringer:
    """The client of one lab."""

    def __init__(self, api):
        self._api = api
        self._brought = 0

    def bring(self, spec, least_bytes=0):
        """The spec with files of so many bytes or more; its setup fails unless they, and no others, are where it begins."""
        self._brought += 1
        line = b"%d\n" % self._brought
        files = {b"check": CHECK, b"data/in": line, b"data/large/in": line * (least_bytes // len(line) + 1)}
        sums = " ".join(shlex.quote(f"{sha256(content)}  {path.decode()}") for path, content in files.items())
        spec.setup = (f"printf '%s\\n' {sums} | sha256sum --check --strict --quiet"
                      f' && [ "$(find . ! -type d | wc -l)" = {len(files)} ] && ./check')
        return bring(self._api, spec, files, executable=[b"check"])

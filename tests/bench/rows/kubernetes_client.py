"""The bare client of the Kubernetes rows: plain HTTP to the API server, with nothing of Muster's."""

import contextlib
import http.client
import json
import ssl
import threading
import time
import urllib.parse

# Less than the ten minutes of the test that runs these rows, so that it shows which end is missing.
DEADLINE_S = 300
CALL_TIMEOUT_S = 60


class BareClient:
    """The administrator, with one connection that is kept, and one for each watch. Not thread-safe."""

    def __init__(self, cluster):
        self._address = urllib.parse.urlsplit(cluster.cluster_entry["server"]).netloc
        self._tls = ssl.create_default_context(cafile=cluster.cluster_entry["certificate-authority"])
        self._headers = {"Authorization": f"Bearer {cluster.admin_token}", "Content-Type": "application/json"}
        self._connection = self._connect(CALL_TIMEOUT_S)

    def _connect(self, timeout_s):
        return http.client.HTTPSConnection(self._address, timeout=timeout_s, context=self._tls)

    def post(self, path, thing):
        self._connection.request("POST", path, json.dumps(thing), self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 201, f"POST {path}: {answer.status} {text}"

    @contextlib.contextmanager
    def watch(self, path):
        """All objects of a path, from now on."""
        connection = self._connect(DEADLINE_S)
        connection.request("GET", f"{path}?watch=1", headers=self._headers)
        watch = Watch(connection.getresponse())
        try:
            yield watch
        finally:
            connection.sock.shutdown(2)
            watch.join()
            connection.close()


class Watch:
    """Objects by their names as they were last, and when each was first seen to have ended."""

    def __init__(self, answer):
        assert answer.status == 200, answer.read()
        self._answer = answer
        self._changed = threading.Condition()
        self._objects = {}
        self._ends = {}
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for line in self._answer:
                now = time.monotonic()
                event = json.loads(line)
                thing = event["object"]
                with self._changed:
                    self._objects[thing["metadata"]["name"]] = thing
                    if has_ended(thing):
                        self._ends.setdefault(thing["metadata"]["name"], now)
                    self._changed.notify_all()

    def until(self, condition):
        """Waits until what is known of all objects fulfils it."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self._objects.values()), DEADLINE_S), "the watch waits in vain"

    def ends(self, jobs):
        """Returns when the objects of these jobs ended, by number. The broker may tell an end before this watch."""
        found = {}

        def all_are_found():
            found.update((int(thing["metadata"]["labels"]["muster.dev/job"]), self._ends[name])
                         for name, thing in self._objects.items() if name in self._ends)
            return found.keys() >= set(jobs)

        with self._changed:
            assert self._changed.wait_for(all_are_found, DEADLINE_S), "the watch does not tell of all ends"
        return found

    def join(self):
        self._thread.join()


def has_ended(thing):
    """Tells whether a Job or a pod is over."""
    status = thing.get("status", {})
    return (status.get("phase") in ("Succeeded", "Failed")
            or any(each["type"] in ("Complete", "Failed") and each["status"] == "True"
                   for each in status.get("conditions", ())))

"""A receiver of Muster's webhooks: python3 webhook_receiver.py SECRET_FILE PORT

It takes only what is signed with the secret, at most five minutes old, and each event once.
"""

import hashlib
import hmac
import http.server
import json
import pathlib
import sys
import time

MAX_AGE_S = 300
MAX_BODY_BYTES = 1 << 20


def is_genuine(secret, header, body):
    """Tells whether the header Muster-Signature, "t=SECONDS,v1=HEX", is that of the body."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    if not parts.get("t", "").isdigit() or abs(time.time() - int(parts["t"])) > MAX_AGE_S:
        return False
    expected = hmac.new(secret, parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts.get("v1", ""))


class Receiver(http.server.BaseHTTPRequestHandler):
    secret = b""
    seen = set()  # keep it where it outlives the program, beside what you do with the events

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length <= MAX_BODY_BYTES else b""
        if not is_genuine(self.secret, self.headers.get("Muster-Signature", ""), body):
            return self.answer(401)
        event = json.loads(body)
        # The broker sends an event again if it did not hear the answer.
        if (event["broker"], event["id"]) not in self.seen:
            print(event["type"], event["job"]["id"], event["message"], flush=True)
            self.seen.add((event["broker"], event["id"]))
        return self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    Receiver.secret = pathlib.Path(sys.argv[1]).read_bytes().strip()
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Receiver).serve_forever()

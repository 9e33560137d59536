"""Receivers of webhooks: a real HTTP server on a thread, and what it was sent."""

import contextlib
import http.server
import json
import ssl
import threading

from harness.impostors import serving


class Receiver:
    """Answers as it is told, and keeps each request whose answer was a success apart from the others."""

    def __init__(self):
        self._lock = threading.Lock()
        self._answers = []
        self._default = 200
        self.tries = []  # (event id, answer's status)
        self.taken = []  # (headers, body) of each that was answered with 2xx
        self.released = threading.Event()  # not set: answers wait
        self.released.set()

    def answer(self, *statuses, default=200, headers=()):
        """The next answers, and that of all further requests."""
        with self._lock:
            self._answers = [(status, dict(headers)) for status in statuses]
            self._default = default

    def handle(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self._lock:
            status, headers = self._answers.pop(0) if self._answers else (self._default, {})
            self.tries.append((int(handler.headers["Muster-Event-Id"]), status))
            if 200 <= status < 300:
                self.taken.append((dict(handler.headers), body))
        self.released.wait(60)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

    def bodies(self):
        with self._lock:
            return [json.loads(body) for _, body in self.taken]

    def jobs(self):
        """The jobs of what it took, in order."""
        return [int(body["job"]["id"]) for body in self.bodies()]


@contextlib.contextmanager
def receiving(certificate=None, port=0):
    """A receiver and its URL; with the paths of a certificate and its key, over HTTPS."""
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # pylint: disable=invalid-name
            receiver.handle(self)

        def log_message(self, *args):  # pylint: disable=arguments-differ
            """Says nothing."""

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            """A caller that goes away, or likes no certificate, is no news."""

    server = Server(("127.0.0.1", port), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as bound:
        yield receiver, f"{'https' if certificate else 'http'}://127.0.0.1:{bound}/hook/TOKEN"

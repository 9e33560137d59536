"""Servers that stand where an API server is expected, or that an API server asks."""

import contextlib
import http.server
import json
import socket
import socketserver
import ssl
import subprocess
import threading

CERTIFICATE_TIMEOUT_S = 60


@contextlib.contextmanager
def serving(server):
    """Serves on a thread of its own; the value is the port."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def make_certificate(directory, name):
    """One that signs itself, for 127.0.0.1: the paths of certificate and key."""
    certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True, timeout=CERTIFICATE_TIMEOUT_S)
    return certificate, key


class _Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):  # pylint: disable=arguments-differ
        """Says nothing."""

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _WebPage(_Quiet):
    def do_GET(self):  # pylint: disable=invalid-name
        self.answer(b"<html><body>It works!</body></html>", "text/html")


def web_page():
    """Answers everything with a page and 200, over plain HTTP; to be served."""
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), _WebPage)


class _Greeting(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def greeting():
    """Speaks first, and no HTTP; to be served."""
    return socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Greeting)


class _Tunnel(_Quiet):
    def do_CONNECT(self):  # pylint: disable=invalid-name
        self.server.asked_for.append(self.path)
        with socket.create_connection(("127.0.0.1", self.server.behind)) as server:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pass_on, args=(server, self.connection))
            back.start()
            _pass_on(self.connection, server)
            back.join()
        self.close_connection = True


def _pass_on(source, sink):
    with contextlib.suppress(OSError):  # either end may go first
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def proxy(port):
    """An HTTP proxy that leads all tunnels to that port of this machine, whatever host is asked for: `asked_for` has these,
    as HOST:PORT. To be served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Tunnel)
    server.behind, server.asked_for = port, []
    return server


def webhook(certificate, key, verdict):
    """An admission webhook, to be served: it lets in what verdict(the object) has no objection to, and returns the objection
    otherwise, as the status of the refusal."""
    class Webhook(_Quiet):
        def do_POST(self):  # pylint: disable=invalid-name
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = review["request"]
            objection = verdict(request["object"])
            response = {"uid": request["uid"], "allowed": objection is None}
            if objection is not None:
                response["status"] = objection
            answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            self.answer(json.dumps(answer).encode(), "application/json")

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server

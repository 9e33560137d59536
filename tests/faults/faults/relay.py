"""Stands between an agent and its API server: passes bytes on, until a fault cuts it."""

import contextlib
import socket
import threading

CHUNK_BYTES = 65536


class Relay:
    """Listens on 127.0.0.1 and passes to `server_port` there."""

    def __init__(self, server_port):
        self._server_port = server_port
        self._lock = threading.Lock()
        self._ends = set()
        self._is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self):
        """All connections end now, and each further one as soon as it is made."""
        with self._lock:
            self._is_cut = True
            for end in self._ends:
                _shut(end)

    def mend(self):
        with self._lock:
            self._is_cut = False

    def close(self):
        self.cut()
        _shut(self._listener)
        self._accepting.join()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._connect(client)

    def _connect(self, client):
        with self._lock:
            try:
                if self._is_cut:
                    raise ConnectionAbortedError
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                return
            self._ends |= {client, server}
        threading.Thread(target=self._pass_both_ways, args=(client, server), daemon=True).start()

    def _pass_both_ways(self, client, server):
        back = threading.Thread(target=_pass, args=(server, client), daemon=True)
        back.start()
        _pass(client, server)
        back.join()
        with self._lock:
            self._ends -= {client, server}
        client.close()
        server.close()


def _pass(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    _shut(source)
    _shut(target)


def _shut(end):
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)

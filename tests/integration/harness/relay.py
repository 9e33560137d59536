"""Stands between an agent and its broker: passes bytes on, and stalls where a test wants to strike."""

import contextlib
import socket
import threading

CHUNK_BYTES = 65536


class StallingRelay:
    """A socket `path` in place of the broker's. It passes the first `after_bytes` of each connection that come from the
    broker, and the others once it is opened."""

    def __init__(self, broker, path, after_bytes):
        self._broker, self._after_bytes = broker, after_bytes
        self._is_open = threading.Event()
        self.address = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def open(self):
        self._is_open.set()

    def close(self):
        self.open()
        _shut(self._listener)
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                with contextlib.suppress(OSError):
                    server.connect(str(self._broker.socket))
                threading.Thread(target=self._pass_both_ways, args=(client, server), daemon=True).start()

    def _pass_both_ways(self, client, server):
        back = threading.Thread(target=self._pass_back, args=(server, client), daemon=True)
        back.start()
        _pass(client, server)
        back.join()
        client.close()
        server.close()

    def _pass_back(self, server, client):
        passed = 0
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK_BYTES):
                passed += len(data)
                if passed > self._after_bytes:
                    self._is_open.wait()
                client.sendall(data)
        _shut(server)
        _shut(client)


def _pass(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    _shut(source)
    _shut(target)


def _shut(end):
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)

"""Stands between a client and a broker: swallows what the broker answers, and cuts all connections, when a test says so."""

import contextlib
import socket
import threading

CHUNK_BYTES = 65536


class CuttingRelay:
    """A socket `path` in place of the broker's."""

    def __init__(self, broker, path):
        self._broker = broker
        self._is_mute = threading.Event()
        self._lock = threading.Lock()
        self._sockets = set()
        self.address = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def mute(self):
        """From now on the broker hears its clients, and they do not hear it."""
        self._is_mute.set()

    def cut(self):
        """Ends all connections; new ones pass everything again."""
        self._is_mute.clear()
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for one in sockets:
            _shut(one)

    def close(self):
        _shut(self._listener)
        self._listener.close()
        self.cut()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(str(self._broker.socket))
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._sockets |= {client, server}
                for source, target, is_answer in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass, args=(source, target, is_answer), daemon=True).start()

    def _pass(self, source, target, is_answer):
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if not (is_answer and self._is_mute.is_set()):
                    target.sendall(data)
        _shut(source)
        _shut(target)


def _shut(one):
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)

"""HTTP/2 frame by frame, for what no honest client sends."""

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
# Names in SETTINGS.
MAX_CONCURRENT_STREAMS, MAX_HEADER_LIST_SIZE = 3, 6
CANCEL = 8
MAX_FRAME = 16384


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _string(text):
    """A string of HPACK, without Huffman's code."""
    data = text.encode()
    length, more = len(data), b""
    if length < 127:
        return bytes([length]) + data
    length -= 127
    while length >= 128:
        more += bytes([length % 128 + 128])
        length //= 128
    return b"\x7f" + more + bytes([length]) + data


def headers(path, more=()):
    """The header block of a call of gRPC; `more`: pairs of names and values."""
    fields = [(":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "localhost"), ("te", "trailers"),
              ("content-type", "application/grpc"), *more]
    return b"".join(b"\x00" + _string(name) + _string(value) for name, value in fields)


class Http2:
    """A connection of a stranger, from `source`, an address of this machine."""

    def __init__(self, address, ca, source="127.0.0.1"):
        host, port = address.removeprefix("tls:").split(":")
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))
        self.socket = context.wrap_socket(plain, server_hostname=host)
        self.send(PREFACE + frame(SETTINGS))

    def send(self, data):
        """False: the other end has hung up."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def call(self, stream, path, more=()):
        """Sends the headers of a call, in as many frames as they need."""
        block = headers(path, more)
        parts = [block[i:i + MAX_FRAME] for i in range(0, len(block), MAX_FRAME)]
        for i, part in enumerate(parts):
            last = END_HEADERS if i == len(parts) - 1 else 0
            if not self.send(frame(CONTINUATION if i else HEADERS, last, stream, part)):
                return

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                return None
            data += more
        return data

    def frames(self):
        """(kind, flags, stream, payload) of what comes, until the connection ends."""
        while True:
            try:
                head = self._exactly(9)
                payload = head and self._exactly(struct.unpack(">I", b"\x00" + head[:3])[0])
            except (ConnectionError, ssl.SSLError):
                return
            if payload is None:
                return
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            yield kind, flags, stream, payload

    def settings(self):
        """The bounds that the other end tells."""
        payload = next(payload for kind, flags, _, payload in self.frames() if kind == SETTINGS and not flags & ACK)
        return dict(struct.unpack(">HI", payload[i:i + 6]) for i in range(0, len(payload), 6))

    def close(self):
        self.socket.close()

"""The address of a broker, as people write it: unix:PATH, HOST:PORT or tls:HOST:PORT."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import urllib.parse

from muster.errors import ConfigurationError

# A socket's path in Linux, without its NUL.
MAX_SOCKET_PATH_BYTES = 107


@dataclasses.dataclass(frozen=True)
class Address:
    """An address that was read."""

    text: str  # as written
    target: str  # as gRPC takes it; never a name that a proxy could redirect
    is_tls: bool = False
    stays_here: bool = False  # what is sent there does not leave this machine


def parse_address(text: str) -> Address:
    """Raises ConfigurationError, which quotes the text and shows the forms."""
    if text.startswith("unix:"):
        path = text[len("unix:"):]
        if path.startswith("///"):
            path = path[2:]
        if not path:
            raise _bad(text, "the path is empty")
        size = len(path.encode())
        if size > MAX_SOCKET_PATH_BYTES:
            raise _bad(text, f"the path has {size} bytes and Linux allows {MAX_SOCKET_PATH_BYTES} for a socket")
        return Address(text, "unix:" + urllib.parse.quote(path, safe="/-._~"), stays_here=True)
    if text.startswith("tls:"):
        target, stays_here = _tcp(text, text[len("tls:"):])
        return Address(text, target, True, stays_here)
    target, stays_here = _tcp(text, text)
    return Address(text, target, False, stays_here)


def _bad(text: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f'broker address "{text}": {problem}; write unix:PATH, HOST:PORT or tls:HOST:PORT, '
                              "e.g. unix:/var/lib/muster/broker.sock or 127.0.0.1:7070")


def _tcp(text: str, place: str) -> tuple[str, bool]:
    """Returns gRPC's target, and whether it is on this machine."""
    if place.startswith(("/", "./")):
        raise _bad(text, f"there is no port; did you mean unix:{place}?")
    host, colon, port = place.rpartition(":")
    if not colon:
        raise _bad(text, "there is no port")
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise _bad(text, f'"{port}" is not a port')
    if not host:
        raise _bad(text, "there is no host")
    if host.startswith("[") and host.endswith("]"):
        try:
            six = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise _bad(text, f'"{host[1:-1]}" is not an IPv6 address') from None
        return f"ipv6:[{host[1:-1]}]:{int(port)}", six.is_loopback
    if ":" in host:
        raise _bad(text, "an IPv6 address goes in brackets, as in [::1]:7070")
    try:
        return f"ipv4:{host}:{int(port)}", ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        pass
    if not re.fullmatch(r"[A-Za-z0-9._-]+", host):
        raise _bad(text, f'"{host}" is not a host name')
    return f"dns:///{host}:{int(port)}", host == "localhost"

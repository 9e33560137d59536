"""The broker, the token and the CA: from arguments, the environment, the user's contexts and configuration file.

The order and the files are those of the command `muster`.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import pathlib
import stat
import time
from typing import Any, Callable, Dict, Mapping, Optional

import yaml

from muster._address import Address, parse_address
from muster.errors import ConfigurationError

# A larger file is neither a configuration, a token nor a certificate.
MAX_FILE_BYTES = 1 << 20
# A login's token is not used if less than this is left of its life.
LOGIN_MARGIN_S = 5.0
TOKEN_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
TOKEN_PREFIX = "mst_"
TOKEN_CHARACTERS, TOKEN_SUM_CHARACTERS = 40, 6


@dataclasses.dataclass(frozen=True)
class Config:
    """The result of the search for the broker and for how to speak with it."""

    address: Address
    origin: str  # "named by MUSTER_BROKER", for errors
    token: Callable[[], str]  # what goes with a call made now; empty: nothing
    context: str = ""
    ca: bytes = b""  # PEM
    ca_file: str = ""  # where it is


def _directory(environment: Mapping[str, str], variable: str, in_home: str) -> Optional[pathlib.Path]:
    xdg = environment.get(variable, "")
    if xdg.startswith("/"):
        return pathlib.Path(xdg) / "muster"
    home = environment.get("HOME", "")
    return pathlib.Path(home) / in_home / "muster" if home else None


def _read(path: pathlib.Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigurationError(f"{path} has more than {MAX_FILE_BYTES} bytes")
    return data


def _yaml(path: Optional[pathlib.Path]) -> Dict[str, Any]:
    """Returns the mapping in a file, with its scalars as texts; empty if there is no such file."""
    if path is None or not path.exists():
        return {}
    try:
        content = yaml.load(_read(path), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    if content is None or content == "":
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path}: it is no mapping")
    return content


def check_token(text: str, source: str) -> str:
    """Returns the token without blanks around it. Raises ConfigurationError, which names the source but never the token."""
    token = text.strip()
    body, total = token[:-TOKEN_SUM_CHARACTERS], token[-TOKEN_SUM_CHARACTERS:]
    number = int.from_bytes(hashlib.sha256(body.encode()).digest()[:8], "big")
    expected = ""
    for _ in range(TOKEN_SUM_CHARACTERS):
        number, digit = divmod(number, len(TOKEN_ALPHABET))
        expected += TOKEN_ALPHABET[digit]
    if len(token) != TOKEN_CHARACTERS or not token.startswith(TOKEN_PREFIX) or total != expected:
        raise ConfigurationError(f'{source} has no whole token: a token is "{TOKEN_PREFIX}" and '
                                 f"{TOKEN_CHARACTERS - len(TOKEN_PREFIX)} letters and digits; copy it again, or make another one")
    return token


def _private(path: pathlib.Path, remedy: str) -> bytes:
    """Reads a file that only its owner may read."""
    data = _read(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ConfigurationError(f"{path} has mode {mode:04o}, so that others may read it; {remedy}")
    return data


def read_token_file(path: str) -> str:
    """Reads the token in a file."""
    data = _private(pathlib.Path(path), f"chmod 600 {path}, and revoke the token if others could use it")
    return check_token(data.decode("utf-8", "replace"), f"the token file {path}")


def _login(path: pathlib.Path, broker: str) -> Callable[[], str]:
    """Reads the ID token of `muster login` again for each call, because `muster` renews it."""

    def token() -> str:
        try:
            kept = json.loads(_private(path, "muster logout, then muster login"))
            text, known = str(kept["id_token"]), str(kept["broker"])
            part = text.split(".")[1]
            end = float(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["exp"])
        except (ValueError, KeyError, IndexError, TypeError):
            raise ConfigurationError(f"the login {path} is damaged; muster login makes another") from None
        if known != broker:
            raise ConfigurationError(f"the login {path} is for the broker {known}; muster login makes one for {broker}")
        if end < time.time() + LOGIN_MARGIN_S:
            raise ConfigurationError("the login is over; muster whoami renews it, or muster login makes another")
        return text

    return token


def load(*, broker: Optional[str] = None, context: Optional[str] = None, token: Optional[str] = None,
         token_file: Optional[str] = None, ca_file: Optional[str] = None,
         environment: Optional[Mapping[str, str]] = None) -> Config:
    """Finds the broker and how to speak with it. Raises ConfigurationError.

    The first that is given counts. Broker: the argument, the argument `context`, MUSTER_BROKER, MUSTER_CONTEXT, the user's
    current context, `broker` of config.yaml, the socket of the user's own broker. Token: the arguments, MUSTER_TOKEN,
    MUSTER_TOKEN_FILE, the context's token file, the context's login.
    """
    variables = os.environ if environment is None else environment
    configuration = _directory(variables, "XDG_CONFIG_HOME", ".config")
    chosen: Dict[str, Any] = {}
    name, origin = "", "given as broker"
    if not broker:
        if context or not variables.get("MUSTER_BROKER"):
            name, chosen = _context(configuration, context or variables.get("MUSTER_CONTEXT", ""))
        broker, origin = _broker(variables, configuration, name, chosen)
    address = parse_address(broker)
    made = _token(variables, configuration, token, token_file, name, chosen, broker)
    ca, path = b"", ""
    if address.is_tls:
        path = ca_file or variables.get("MUSTER_CA_FILE") or str(chosen.get("ca_file") or "")
        if not path:
            raise ConfigurationError(f'broker address "{broker}": it needs the CA by which you know the broker: ca_file, '
                                     "MUSTER_CA_FILE or a context; muster token create --bundle on the broker's host makes all "
                                     "that muster context import takes")
        ca = _read(pathlib.Path(path))
        if b"-----BEGIN CERTIFICATE-----" not in ca:
            raise ConfigurationError(f"the CA's file {path} has no certificate; it has -----BEGIN CERTIFICATE-----")
    return Config(address, origin, made, name, ca, path)


def _context(configuration: Optional[pathlib.Path], wanted: str) -> tuple[str, Dict[str, Any]]:
    """Returns the context of that name, or the user's current one; its name is empty if there is none."""
    content = _yaml(configuration / "contexts.yaml" if configuration else None)
    contexts = content.get("contexts") or {}
    name = wanted or str(content.get("current") or "")
    if not name:
        return "", {}
    if not isinstance(contexts, dict) or not isinstance(contexts.get(name), dict):
        known = ", ".join(sorted(contexts)) if contexts else ""
        raise ConfigurationError(f'there is no context "{name}"; ' + (
            f"there are: {known}" if known else "muster context set NAME --broker ADDRESS makes one"))
    return name, contexts[name]


def _broker(variables: Mapping[str, str], configuration: Optional[pathlib.Path], name: str,
            chosen: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the address, and the setting that named it."""
    if name:
        if not chosen.get("broker"):
            raise ConfigurationError(f'the context "{name}" has no broker; muster context set {name} --broker ADDRESS')
        return str(chosen["broker"]), f'named by the context "{name}"'
    if variables.get("MUSTER_BROKER"):
        return variables["MUSTER_BROKER"], "named by MUSTER_BROKER"
    path = configuration / "config.yaml" if configuration else None
    named = _yaml(path).get("broker")
    if named:
        return str(named), f"named in {path}"
    state = _directory(variables, "XDG_STATE_HOME", ".local/state")
    if state is None:
        raise ConfigurationError("no broker is named: give Client(broker=...) or set MUSTER_BROKER")
    return f"unix:{state}/broker.sock", "tried because none is named by Client(broker=...), by MUSTER_BROKER or by a context"


def _token(variables: Mapping[str, str], configuration: Optional[pathlib.Path], token: Optional[str],
           token_file: Optional[str], name: str, chosen: Mapping[str, Any], broker: str) -> Callable[[], str]:
    """Finds the token, and returns a function that gives it to each call."""
    text = ""
    if token:
        text = check_token(token, "token")
    elif token_file:
        text = read_token_file(token_file)
    elif variables.get("MUSTER_TOKEN", ""):
        text = check_token(variables["MUSTER_TOKEN"], "MUSTER_TOKEN")
    elif variables.get("MUSTER_TOKEN_FILE", ""):
        text = read_token_file(variables["MUSTER_TOKEN_FILE"])
    elif chosen.get("token_file"):
        text = read_token_file(str(chosen["token_file"]))
    elif name and configuration:
        login = configuration / "logins" / (hashlib.sha256(name.encode()).hexdigest()[:32] + ".json")
        if login.exists():
            return _login(login, broker)
    return lambda: text

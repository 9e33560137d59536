"""Calls of the Connect protocol over HTTP/1.1, byte by byte, with nothing but Python's own client."""

import base64
import http.client
import json
import socket
import struct

from google.protobuf import json_format
from google.rpc import error_details_pb2
from muster.v1 import identity_service_pb2, identity_service_pb2_grpc

from harness.api import CALL_TIMEOUT_S
from harness.wait import eventually

END_STREAM = 0x02
DETAILS = {message.DESCRIPTOR.full_name: message for message in (
    error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo)}


def make_token(world, name, user="ada", role="SUBMITTER"):
    """The secret of a new token, made by the owner of the socket."""
    request = identity_service_pb2.CreateTokenRequest(
        name=name, user=user, role=identity_service_pb2.AccessRole.Value(f"ACCESS_ROLE_{role}"))
    request.lifetime.seconds = 3600
    stub = identity_service_pb2_grpc.IdentityServiceStub(world.api(world.broker).channel)
    return stub.CreateToken(request, timeout=CALL_TIMEOUT_S).secret


def port_of(broker, kind="http"):
    """The port that the broker chose. It answers over gRPC a moment before it writes the file."""
    path = broker.state_dir / f"broker.{kind}.port"
    return int(eventually(lambda: path.exists() and path.read_text().strip(), "the port is told", alive=broker.check_alive))


def envelope(message, flags=0):
    return struct.pack(">BI", flags, len(message)) + message


def detail_of(error, name):
    """A detail of an error, from its base64."""
    for detail in error["details"]:
        if detail["type"] == name:
            value = detail["value"]
            return DETAILS[name].FromString(base64.b64decode(value + "=" * (-len(value) % 4)))
    raise AssertionError(f"no {name} in {error}")


def reason_of(error):
    return detail_of(error, "google.rpc.ErrorInfo").reason


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Stream:
    """The answer to a stream's call: iterates over its messages, and then has its end."""

    def __init__(self, answer, is_json=True):
        self.answer = answer
        self.is_json = is_json
        self.end = None

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.answer.read(size - len(data))
            assert piece, f"the stream ends {len(data)} bytes into {size}"
            data += piece
        return data

    def __iter__(self):
        while self.end is None:
            flags, size = struct.unpack(">BI", self._read(5))
            data = self._read(size)
            if flags == END_STREAM:
                self.end = json.loads(data)
                assert self.answer.read() == b""
                return
            assert flags == 0
            yield json.loads(data) if self.is_json else data


class Connect:
    """A caller with one connection, which is kept alive."""

    def __init__(self, port=None, token=None, context=None, path=None, host="127.0.0.1"):
        self.token = token
        if path:
            self.connection = UnixConnection(path, timeout=CALL_TIMEOUT_S)
        elif context:
            self.connection = http.client.HTTPSConnection(host, port, timeout=CALL_TIMEOUT_S, context=context)
        else:
            self.connection = http.client.HTTPConnection(host, port, timeout=CALL_TIMEOUT_S)

    def close(self):
        self.connection.close()

    def request(self, verb, path, body=None, headers=None):
        """The answer and its body."""
        answer = self.begin(verb, path, body, headers)
        return answer, answer.read()

    def begin(self, verb, path, body=None, headers=None):
        given = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        self.connection.request(verb, path, body, {**given, **(headers or {})})
        return self.connection.getresponse()

    def call(self, method, message=None, headers=None):
        """The status and the JSON of a unary call. `method`: "JobsService/GetJob"; `message`: a dict, or one of
        protobuf's."""
        answer, body = self.request("POST", f"/muster.v1.{method}", json.dumps(as_dict(message)),
                                    {"Content-Type": "application/json", **(headers or {})})
        assert answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(body)

    def ok(self, method, message=None, headers=None):
        status, body = self.call(method, message, headers)
        assert status == 200, body
        return body

    def error(self, method, message=None, headers=None):
        status, body = self.call(method, message, headers)
        assert status != 200, body
        return body

    def call_binary(self, method, message, answer_type):
        answer, body = self.request("POST", f"/muster.v1.{method}", message.SerializeToString(),
                                    {"Content-Type": "application/proto", "Connect-Protocol-Version": "1"})
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/proto"), body
        return answer_type.FromString(body)

    def stream(self, method, message=None, headers=None):
        answer = self.begin("POST", f"/muster.v1.{method}", envelope(json.dumps(as_dict(message)).encode()),
                            {"Content-Type": "application/connect+json", **(headers or {})})
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/connect+json")
        return Stream(answer)


def as_dict(message):
    if message is None or isinstance(message, dict):
        return message or {}
    return json_format.MessageToDict(message)

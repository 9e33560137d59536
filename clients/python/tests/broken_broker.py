"""A broker that answers as a test tells it to: for what a real one seldom does."""

import concurrent.futures

import grpc
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

from muster import _rpc


def details(code, message, *messages):
    """The trailing metadata of an error."""
    status = status_pb2.Status(code=code.value[0], message=message)
    for one in messages:
        status.details.add().Pack(one)
    return (("grpc-status-details-bin", status.SerializeToString()),)


def retry_info(seconds):
    return error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=int(seconds * 1e9)))


def error_info(reason, **metadata):
    return error_details_pb2.ErrorInfo(domain="muster", reason=reason, metadata=metadata)


class BrokenBroker:
    """`answers` has, for each method's name, a list of functions (request, context) for one call after the other."""

    def __init__(self, path, **answers):
        self.address = f"unix:{path}"
        self.requests = []
        self._answers = answers
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        handlers = {}
        for method in _rpc.METHODS:
            if method.name in answers:
                make = grpc.unary_stream_rpc_method_handler if method.name in ("WatchJobs", "ReadLog", "FetchFiles") else (
                    grpc.unary_unary_rpc_method_handler)
                handlers.setdefault(method.service, {})[method.name] = make(
                    self._handler(method.name), request_deserializer=method.request.FromString,
                    response_serializer=lambda message: message.SerializeToString())
        for service, methods in handlers.items():
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"muster.v1.{service}", methods),))
        self._server.add_insecure_port(self.address)
        self._server.start()

    def _handler(self, name):
        def answer(request, context):
            self.requests.append(request)
            return self._answers[name].pop(0)(request, context)
        return answer

    def stop(self):
        self._server.stop(None)


def refuse(code, message, *messages):
    def answer(request, context):
        context.set_trailing_metadata(details(code, message, *messages))
        context.abort(code, message)
    return answer

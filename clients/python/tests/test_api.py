"""The table of calls is that of the API."""

import importlib

import pytest

from muster import _rpc


@pytest.mark.parametrize("method", _rpc.METHODS, ids=lambda method: method.name)
def test_each_call_has_the_messages_of_the_service(method):
    module = {"JobsService": "jobs", "ClustersService": "clusters", "FilesService": "files", "IdentityService": "identity"}
    service = importlib.import_module(f"muster.v1.{module[method.service]}_service_pb2").DESCRIPTOR.services_by_name[method.service]
    described = service.methods_by_name[method.name]
    assert method.path == f"/{service.full_name}/{method.name}"
    assert (described.input_type.name, described.output_type.name) == (method.request.__name__, method.answer.__name__)

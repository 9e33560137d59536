"""Brings files to a broker as a client does, by plain gRPC."""

import hashlib

from muster.v1 import file_tree_pb2, files_service_pb2

CHUNK_BYTES = 256 << 10


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def parts(contents):
    """The messages of an upload."""
    for content in contents:
        yield head(content)
        for at in range(0, len(content), CHUNK_BYTES):
            yield files_service_pb2.UploadFilesRequest(chunk=content[at:at + CHUNK_BYTES])


def head(content):
    return files_service_pb2.UploadFilesRequest(
        head=files_service_pb2.FileHead(sha256=sha256(content), size_bytes=len(content)))


def upload(api, contents):
    """Uploads, and returns the number of files that were stored."""
    return api.files.UploadFiles(parts(contents), timeout=60).stored_files


def missing(api, contents):
    """Returns the files that the broker lacks."""
    request = files_service_pb2.FindMissingFilesRequest(sha256=[sha256(content) for content in contents])
    lacking = set(api.files.FindMissingFiles(request, timeout=60).missing_sha256)
    return [content for content in contents if sha256(content) in lacking]


def download(api, content, offset=0):
    request = files_service_pb2.DownloadFileRequest(sha256=sha256(content), offset=offset)
    return b"".join(answer.chunk for answer in api.files.DownloadFile(request, timeout=60))


def tree_of(files, executable=()):
    """The bytes of a tree with these files."""
    tree = file_tree_pb2.FileTree(total_bytes=sum(len(content) for content in files.values()))
    for path, content in sorted(files.items()):
        tree.entries.add(path=path, kind=file_tree_pb2.FILE_KIND_FILE, size_bytes=len(content), sha256=sha256(content),
                         executable=path in executable)
    return tree.SerializeToString(deterministic=True)


def bring(api, spec, files, path="", executable=()):
    """The files are at the broker, and the job of the spec brings them along."""
    tree = tree_of(files, executable)
    upload(api, [*files.values(), tree])
    spec.uploads.add(tree_sha256=sha256(tree), path=path)
    return spec

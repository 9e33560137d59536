"""REAL COMMAND DONE ARGUMENT...: muster-supervisor REAL, but that the agent never gets the answer to one of its commands;
once there is one, the file DONE is made."""

import os
import pathlib
import subprocess
import sys
import threading

REAL, COMMAND, DONE, *ARGUMENTS = sys.argv[1:]


def frames(stream):
    """The fields of each frame's head, and all its bytes."""
    while line := stream.readline():
        head_bytes, body_bytes = map(int, line.split())
        head = stream.read(head_bytes)
        yield head.split(b"\0"), line + head + stream.read(body_bytes)


def send(stream, frame):
    stream.write(frame)
    stream.flush()


def main():
    if ARGUMENTS != ["serve"]:
        os.execv(REAL, [REAL, *ARGUMENTS])
    server = subprocess.Popen([REAL, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    held = set()

    def pass_on():
        for fields, frame in frames(sys.stdin.buffer):
            name = next(field for field in fields if field.startswith(b"word="))
            if name == b"word=" + COMMAND.encode():
                held.add(fields[0])
            send(server.stdin, frame)
        server.stdin.close()

    threading.Thread(target=pass_on, daemon=True).start()
    for fields, frame in frames(server.stdout):
        if fields[0] in held:
            pathlib.Path(DONE).touch()
        else:
            send(sys.stdout.buffer, frame)


if __name__ == "__main__":
    main()

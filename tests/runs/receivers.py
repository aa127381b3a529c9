"""A receiver of webhooks over TLS that behaves as a test says, and a context that trusts it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NAME = "receiver.example"
Behave = Callable[[ssl.SSLSocket], None]
OPENSSL = shutil.which("openssl")


@dataclass
class Receiver:
    """Does with each connection what `behave` says; `requests` are those that arrived whole, as bytes."""

    port: int
    context: ssl.SSLContext
    behave: Behave | None = None
    requests: list[bytes] = field(default_factory=list)
    # Set where a hanging connection may end.
    over: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/hook", host: str = NAME) -> str:
        return f"https://{host}:{self.port}{path}"

    @property
    def last(self) -> tuple[dict[str, str], bytes]:
        """The headers, in lower case, and the body of the last request."""
        head, _, body = self.requests[-1].partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        return {
            "request": lines[0],
            **{k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])},
        }, body

    def handle(self, connection: ssl.SSLSocket) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        length = int(received.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(received.partition(b"\r\n\r\n")[2]) < length:
            received += connection.recv(65536)
        self.requests.append(received)
        assert self.behave
        self.behave(connection)


def answering(status: str = "204 No Content", headers: str = "", body: bytes = b"") -> Behave:
    """Answer with a status, such as `500 Oops`."""
    content = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body
    return lambda connection: connection.sendall(content)


def make_certificate(folder: Path, name: str = NAME) -> tuple[Path, Path]:
    """The files of a certificate for a name and 127.0.0.1, which is its own authority, and of its key."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    options = [
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    named = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"]
    command = [str(OPENSSL), "req", *options, *named, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@contextlib.contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    """Listen at a free port until the end."""
    certificate, key = make_certificate(folder)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = Receiver(
            listening.getsockname()[1], ssl.create_default_context(cafile=certificate)
        )

        def serve(plain: socket.socket) -> None:
            with (
                contextlib.suppress(OSError),
                server.wrap_socket(plain, server_side=True) as connection,
            ):
                receiver.handle(connection)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(
                        target=serve, args=(listening.accept()[0],), daemon=True
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        yield receiver
        receiver.over.set()
        # Wakes the thread that accepts.
        listening.shutdown(socket.SHUT_RDWR)

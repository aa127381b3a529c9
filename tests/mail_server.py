"""A server of mail on this machine, which keeps every mail that it takes."""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast


class _Handler(socketserver.StreamRequestHandler):
    """The commands of RFC 5321 that a client without extensions sends."""

    def handle(self) -> None:
        self._say("220 mail.example.org")
        while line := self.rfile.readline():
            command = line.split()[0].upper() if line.split() else b""
            if command == b"DATA":
                self._say("354 go on")
                self._take()
            elif command == b"QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 mail.example.org")

    def _take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)

        server = cast("MailServer", self.server)
        mail = message_from_bytes(b"".join(lines), policy=policy.default)
        server.mails.append(cast(EmailMessage, mail))
        self._say("250 taken")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class MailServer(socketserver.ThreadingTCPServer):
    """The mails that arrived, in order."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mails: list[EmailMessage] = []

    def links(self, to: str) -> list[str]:
        """Return the links in the last mail to an address."""
        mail = [mail for mail in self.mails if mail["To"] == to][-1]
        return re.findall(r"https?://\S+[^\s.,]", mail.get_content())


@contextmanager
def mail_server(settings: Any) -> Iterator[MailServer]:
    """Run a server of mail, and let this process send mail through it."""
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address[:2]
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        settings.EVALHUB_MAIL_URL = f"smtp://127.0.0.1:{server.server_address[1]}"
        settings.EVALHUB_URL = "https://eval.example.org"
        settings.DEFAULT_FROM_EMAIL = "evalhub@example.org"
        try:
            yield server
        finally:
            server.shutdown()

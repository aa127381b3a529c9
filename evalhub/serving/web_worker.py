"""gunicorn's worker with threads, for clients that are slow or silent: none of them holds a thread for long."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from functools import partial
from typing import Any

from django.conf import settings
from gunicorn.workers.gthread import TConn, ThreadWorker

# The slowest line that is waited for.
_BYTES_PER_SECOND = 1024


class PatientSocket(socket.socket):
    """Waits EVALHUB_PATIENCE_SECONDS for the bytes of one request, and a second more for each kilobyte that came."""

    _waited, _received = 0.0, 0

    def setblocking(self, flag: bool) -> None:
        """As gunicorn does at the beginning of each request."""
        self._waited, self._received = 0.0, 0
        self.settimeout(settings.EVALHUB_PATIENCE_SECONDS if flag else 0.0)

    def recv(self, size: int, flags: int = 0) -> bytes:
        given, left = self.gettimeout(), self._left()
        if given == 0.0:
            return super().recv(size, flags)
        start = time.monotonic()
        self.settimeout(left if given is None else min(given, left))
        try:
            content = super().recv(size, flags)
        except TimeoutError as error:
            raise ConnectionResetError(errno.ECONNRESET, "the client is too slow") from error
        finally:
            self._waited += time.monotonic() - start
            self.settimeout(given)
        self._received += len(content)
        return content

    def _left(self) -> float:
        allowed = settings.EVALHUB_PATIENCE_SECONDS + self._received / _BYTES_PER_SECOND
        return float(max(0.001, allowed - self._waited))


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """A connection gets a thread when it has something to say, not while it is silent."""

    def accept(self, listener: Any) -> None:
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        own = PatientSocket(fileno=accepted.detach())
        self.nr_conns += 1
        connection = TConn(self.cfg, own, address, listener.getsockname())
        connection.set_timeout()
        self.pending_conns.append(connection)
        self.poller.register(own, selectors.EVENT_READ, partial(self.on_pending_socket_readable, connection))

"""Send due mails from a worker, in one thread, while it evaluates."""

from __future__ import annotations

import logging
import smtplib
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db import DatabaseError, connections

from runs.models import Mail
from runs.services.mail.outbox import (
    Claim,
    claim_next,
    settle_failed,
    settle_sent,
    settle_without_address,
)

logger = logging.getLogger(__name__)

# Mails of one connection to the mail server.
AT_ONCE = 100
_THREAD = "mail"
# SMTP answers from this code on are permanent.
_PERMANENT = 500

Start = Callable[[Callable[[], None]], None]


def in_a_thread(send: Callable[[], None]) -> None:
    """Send in a thread that ends with its worker: an interrupted mail is sent again."""
    threading.Thread(target=send, name=_THREAD, daemon=True).start()


class MailSender:
    """Sends due mails, one after the other. `start` runs the sending."""

    def __init__(self, start: Start = in_a_thread) -> None:
        self._start = start
        self._busy = threading.Lock()

    def send_due(self) -> None:
        """Start to send the due mails, unless a sending is under way."""
        if self._busy.acquire(blocking=False):
            self._start(self._send_all)

    def _send_all(self) -> None:
        try:
            send_due()
        except DatabaseError as error:
            # The lease ends, and another attempt is made.
            logger.warning("mail: not recorded: %s", error)
        except Exception:
            logger.exception("mail: sending failed")
        finally:
            self._busy.release()
            if threading.current_thread().name == _THREAD:
                connections.close_all()


def send_due() -> int:
    """Send the due mails with one connection, and return how many were accepted.

    If the mail server is unavailable, the first mail is put back and all others stay due.
    """
    accepted, connection = 0, None
    try:
        while accepted < AT_ONCE and (claimed := claim_next()):
            mail = Mail.objects.select_related("recipient").get(pk=claimed.pk)
            if not address_of(mail):
                settle_without_address(claimed)
                continue

            connection = connection or get_connection()
            if not _send(claimed, message_of(mail), connection):
                break
            accepted += 1
    finally:
        if connection:
            connection.close()

    return accepted


def address_of(mail: Mail) -> str:
    """Return where a mail goes; empty for an account that is disabled or has no address."""
    if mail.recipient and not mail.recipient.is_active:
        return ""
    return mail.address or (mail.recipient.email if mail.recipient else "")


def message_of(mail: Mail) -> EmailMessage:
    """Return the message of a mail, with the mail's id in every attempt."""
    host = urlsplit(settings.EVALHUB_URL).hostname or "evalhub.invalid"
    headers = {"Message-ID": f"<{mail.pk}@{host}>", "Auto-Submitted": "auto-generated"}
    return EmailMessage(
        mail.subject, mail.text, settings.DEFAULT_FROM_EMAIL, [address_of(mail)], headers=headers
    )


def _send(claimed: Claim, message: EmailMessage, connection: Any) -> bool:
    """Send one mail and record the result. Return whether the next one is worth a try."""
    try:
        connection.send_messages([message])
    except smtplib.SMTPRecipientsRefused as error:
        code, reply = next(iter(error.recipients.values()), (0, b""))
        settle_failed(claimed, f"{code} {reply!r}", for_good=code >= _PERMANENT)
        return True
    except smtplib.SMTPDataError as error:
        permanent = error.smtp_code >= _PERMANENT
        settle_failed(claimed, f"{error.smtp_code} {error.smtp_error!r}", for_good=permanent)
        return permanent
    except (OSError, smtplib.SMTPException) as error:
        settle_failed(claimed, f"the server of mail is away: {error}", for_good=False)
        logger.warning("mail: the server of mail is away: %s", error)
        return False
    except ValueError as error:
        # An address or a name that a header cannot have.
        settle_failed(claimed, f"it cannot be sent: {error}", for_good=True)
        return True

    settle_sent(claimed)
    return True

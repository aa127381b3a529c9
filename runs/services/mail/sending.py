"""Send due mails from a worker, in one thread beside its evaluations."""

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

# Of one connection to the server of mail.
AT_ONCE = 100
_THREAD = "mail"
# Answers of SMTP from this on are for good; those below may change.
_PERMANENT = 500

Start = Callable[[Callable[[], None]], None]


def in_a_thread(send: Callable[[], None]) -> None:
    """Send in a thread that does not keep a worker from ending: an interrupted mail is sent again."""
    threading.Thread(target=send, name=_THREAD, daemon=True).start()


class MailSender:
    """Sends what is due, one mail after the other. `start` runs the sending."""

    def __init__(self, start: Start = in_a_thread) -> None:
        self._start = start
        self._busy = threading.Lock()

    def send_due(self) -> None:
        """Start to send what is due, unless that is under way."""
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
    """Send what is due with one connection, and return how many mails were accepted.

    Where the server of mail is away the first mail is put back and nothing more is tried: all
    others stay due.
    """
    sent, connection = 0, None
    try:
        while sent < AT_ONCE and (claimed := claim_next()):
            found = Mail.objects.select_related("recipient").get(pk=claimed.pk)
            if not (address_of(found) and found.recipient.is_active):
                settle_without_address(claimed)
                continue
            connection = connection or get_connection()
            if not _send(claimed, message_of(found), connection):
                break
            sent += 1
    finally:
        if connection:
            connection.close()
    return sent


def address_of(mail: Mail) -> str:
    return mail.address or mail.recipient.email


def message_of(mail: Mail) -> EmailMessage:
    """Return the message of a mail. Its id is the mail's, in every attempt."""
    host = urlsplit(settings.EVALHUB_URL).hostname or "evalhub.invalid"
    headers = {"Message-ID": f"<{mail.pk}@{host}>", "Auto-Submitted": "auto-generated"}
    return EmailMessage(
        mail.subject, mail.text, settings.DEFAULT_FROM_EMAIL, [address_of(mail)], headers=headers
    )


def _send(claimed: Claim, message: EmailMessage, connection: Any) -> bool:
    """Send one mail and record what became of it. Return whether the next one is worth a try."""
    try:
        connection.send_messages([message])
    except smtplib.SMTPRecipientsRefused as error:
        code, said = next(iter(error.recipients.values()), (0, b""))
        settle_failed(claimed, f"{code} {said!r}", for_good=code >= _PERMANENT)
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
        # An address or a name that no header can have.
        settle_failed(claimed, f"it cannot be sent: {error}", for_good=True)
        return True
    settle_sent(claimed)
    return True

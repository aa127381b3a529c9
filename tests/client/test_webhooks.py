"""Receivers of webhooks: what is the server's, and what is not."""

from __future__ import annotations

import pytest

from evalhub import client as evh

# Of the libraries of the specification.
SECRET, ID, MOMENT = (
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    1614265330,
)
BODY, SIGNATURE = b'{"test": 2432232314}', "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {"Webhook-Id": ID, "WEBHOOK-TIMESTAMP": str(MOMENT), "webhook-signature": SIGNATURE}
WRONG = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="


def clock() -> float:
    return MOMENT + 299.0


@pytest.mark.parametrize("body", [BODY, BODY.decode()])
@pytest.mark.parametrize("secret", [SECRET, SECRET.removeprefix("whsec_"), f" {SECRET}\n"])
def test_an_event_is_returned(body: bytes | str, secret: str) -> None:
    assert evh.webhooks.verify(HEADERS, body, secret, clock=clock) == {"test": 2432232314}


def test_one_of_several_signatures_is_enough() -> None:
    several = " ".join(
        [WRONG, "v1a,xx", "v1,no base64", "nonsense", SIGNATURE, WRONG.replace("v1", "v2")]
    )
    assert evh.webhooks.verify({**HEADERS, "webhook-signature": several}, BODY, SECRET, clock=clock)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-signature": WRONG}, {"webhook-signature": SIGNATURE.replace("v1,", "v2,")},
        {"webhook-signature": SIGNATURE[3:]}, {"webhook-signature": ""}, {"Webhook-Id": "another"},
        {"WEBHOOK-TIMESTAMP": str(MOMENT + 1)}, {"WEBHOOK-TIMESTAMP": "hello"}, {"WEBHOOK-TIMESTAMP": "-1"},
        {"WEBHOOK-TIMESTAMP": "9" * 5000},
    ],
)  # fmt: skip
def test_what_is_not_signed_so_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(evh.BadSignature):
        evh.webhooks.verify({**HEADERS, **changed}, BODY, SECRET, clock=clock)


def test_other_bytes_headers_secrets_and_times_are_refused() -> None:
    for name in HEADERS:
        rest = {key: value for key, value in HEADERS.items() if key != name}
        with pytest.raises(evh.BadSignature, match=f"no header {name.lower()}"):
            evh.webhooks.verify(rest, BODY, SECRET, clock=clock)
    with pytest.raises(evh.BadSignature):
        evh.webhooks.verify(HEADERS, BODY + b" ", SECRET, clock=clock)
    with pytest.raises(evh.BadSignature):
        evh.webhooks.verify(HEADERS, BODY, "whsec_" + "A" * 44, clock=clock)
    for seconds in (301, -301):
        with pytest.raises(evh.BadSignature, match="more than 300 s"):
            evh.webhooks.verify(HEADERS, BODY, SECRET, clock=lambda late=seconds: MOMENT + late)  # type: ignore[misc]
    assert evh.webhooks.verify(HEADERS, BODY, SECRET, tolerance=400, clock=lambda: MOMENT - 301.0)
    for text in ("", "whsec_", "whsec_é", "whsec_?"):
        with pytest.raises(evh.BadConfig):
            evh.webhooks.verify(HEADERS, BODY, text, clock=clock)

"""An OpenID Connect provider on this machine, which logs everybody in as one person.

It knows one client, and checks its secret, the address to return to and the verifier of PKCE. A
test changes what it sends: its claims, its algorithm, its description.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "evalhub", "a secret of the client"
RETURN_TO = "https://eval.example.org/login/organisation/callback/"


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def unsigned(claims: dict[str, Any]) -> str:
    """Return a token with the algorithm `none`."""
    return ".".join(_encode(json.dumps(part).encode()) for part in ({"alg": "none"}, claims)) + "."


class Provider(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.key = RSAKey.generate_key(2048, {"kid": "first"})
        # Who logs in, and what a test changes of the token, of its claims and the description.
        self.person: dict[str, Any] = {
            "sub": "ada-1",
            "email": "ada@lab.example",
            "email_verified": True,
            "preferred_username": "ada",
        }
        self.change: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.description: dict[str, Any] = {}
        self.user_info: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.requests: list[dict[str, str]] = []

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": "first"}, claims, self.key)

    def signed_with_public_key(self, claims: dict[str, Any]) -> str:
        """Return a token whose HMAC has the public key as its secret."""
        head = {"alg": "HS256", "kid": "first"}
        text = ".".join(_encode(json.dumps(part).encode()) for part in (head, claims))
        secret = self.key.as_pem(private=False)
        return f"{text}.{_encode(hmac.digest(secret, text.encode(), 'sha256'))}"

    def describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **self.description,
        }

    def authorize(self, query: dict[str, str]) -> str:
        """Return where the browser goes: back, with a code."""
        self.requests.append(query)
        assert (query["client_id"], query["response_type"]) == (CLIENT_ID, "code")
        assert query["redirect_uri"] == RETURN_TO
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self.codes[code] = query
        parameters = {"code": code, "state": query["state"], "session_state": "extra"}
        return f"{RETURN_TO}?{urlencode(parameters)}"

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Return the tokens of a code, once."""
        client = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        request = self.codes.pop(form.get("code", ""), None)
        digest = _encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if request is None or client.replace("+", " ") != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return 400, {"error": "invalid_grant"}
        if digest != request["code_challenge"] or form["redirect_uri"] != request["redirect_uri"]:
            return 400, {"error": "invalid_grant"}

        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": request["nonce"],
            **self.person,
        }
        token = self.sign(self.change(claims))
        answer = {"access_token": "opaque", "token_type": "Bearer", "expires_in": 300}
        return 200, {**answer, "id_token": token} if token else answer


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        provider = cast(Provider, self.server)
        path = urlsplit(self.path).path
        if path == "/.well-known/openid-configuration":
            self._answer(200, provider.describe())
        elif path == "/keys":
            self._answer(200, {"keys": [provider.key.as_dict(private=False)]})
        elif path == "/userinfo":
            self._answer(200, {"sub": provider.person["sub"], **provider.user_info})
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        form = {
            name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()
        }
        provider = cast(Provider, self.server)
        self._answer(*provider.exchange(form, self.headers.get("Authorization", "")))

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        pass


@contextmanager
def openid_provider(settings: Any) -> Iterator[Provider]:
    """Run a provider, with which users of this server log in."""
    provider = Provider()
    thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    settings.EVALHUB_OIDC_ISSUER = provider.issuer
    settings.EVALHUB_OIDC_CLIENT_ID = CLIENT_ID
    settings.EVALHUB_OIDC_CLIENT_SECRET = CLIENT_SECRET
    settings.EVALHUB_OIDC_LABEL = "Lab login"
    settings.EVALHUB_URL = "https://eval.example.org"
    try:
        yield provider
    finally:
        provider.shutdown()
        thread.join()
        provider.server_close()

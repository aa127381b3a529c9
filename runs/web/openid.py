"""The client of the OpenID Connect provider that the settings name: the code flow with PKCE.

Authlib makes state, nonce and verifier, keeps them in the session and uses each once. What it reads
from the provider's own description is set here: the issuer, the audience, and the algorithms.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.django_client import DjangoOAuth2App, OAuth, OAuthError
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from joserfc.errors import JoseError
from requests import RequestException

from runs.errors import InvalidInput, NotAllowed, Unavailable
from runs.services.accounts.provider_accounts import provider_label

# Signatures with a public key. The provider's description may name others: with `none` a token
# would need no signature.
ALGORITHMS = (
    *("RS256", "RS384", "RS512"),
    *("PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
)
_SECONDS = 10
# By how much the clocks of provider and server may differ.
_LEEWAY = 30
_log = logging.getLogger(__name__)


class _Provider(DjangoOAuth2App):  # type: ignore[misc]
    """The provider, as far as its description agrees with the settings."""

    def load_server_metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = super().load_server_metadata()
        if metadata.get("issuer") != settings.EVALHUB_OIDC_ISSUER:
            raise ValueError(
                f"the provider calls itself {metadata.get('issuer')!r}, and EVALHUB_OIDC_ISSUER "
                f"is {settings.EVALHUB_OIDC_ISSUER!r}"
            )

        metadata["id_token_signing_alg_values_supported"] = list(ALGORITHMS)

        # The method of OpenID Connect where the description names none.
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if "client_secret_basic" not in methods:
            metadata["token_endpoint_auth_method"] = "client_secret_post"  # noqa: S105
        return metadata


def begin(request: HttpRequest, callback: str) -> HttpResponse:
    """Redirect the browser to the provider, which sends it back to the callback.

    Raise Unavailable if the provider does not answer.
    """
    try:
        response: HttpResponse = _provider().authorize_redirect(
            request, f"{settings.EVALHUB_URL}{callback}"
        )
    except (RequestException, ValueError, RuntimeError) as error:
        raise _unavailable(error) from error

    return response


def finish(request: HttpRequest) -> Mapping[str, Any]:
    """Return the claims of the person whom the provider sent back.

    Raise InvalidInput for a state that is unknown, used or too old, NotAllowed if the provider
    declined or sent a token that is not valid, Unavailable if it does not answer.
    """
    provider = _provider()
    label = provider_label()
    try:
        token = provider.authorize_access_token(
            request,
            claims_options={
                "iss": {"essential": True, "value": settings.EVALHUB_OIDC_ISSUER},
                "aud": {"essential": True, "value": settings.EVALHUB_OIDC_CLIENT_ID},
            },
            leeway=_LEEWAY,
        )
        return _with_user_info(provider, token)
    except MismatchingStateError as error:
        raise InvalidInput(
            "this login was used already, took longer than an hour or began in another browser; "
            "log in again"
        ) from error
    except OAuthError as error:
        _log.warning("the provider declined a login: %s", error.error)
        raise NotAllowed(
            f"{label} declined the login; log in again, or ask an administrator if you may use "
            "this server"
        ) from error
    except RequestException as error:
        raise _unavailable(error) from error
    except (AuthlibBaseError, JoseError, ValueError, KeyError, TypeError, RuntimeError) as error:
        _log.warning("the provider sent a login that is not valid: %s", error)
        raise NotAllowed(
            f"{label} sent a login that is not valid; log in again, and tell an administrator if "
            "that does not help"
        ) from error


def _provider() -> Any:
    """Return a client that has read nothing yet: the keys of each login are the present ones."""
    issuer = settings.EVALHUB_OIDC_ISSUER.rstrip("/")
    return OAuth().register(
        "provider",
        client_cls=_Provider,
        client_id=settings.EVALHUB_OIDC_CLIENT_ID,
        client_secret=settings.EVALHUB_OIDC_CLIENT_SECRET,
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid email profile",
            "code_challenge_method": "S256",
            "default_timeout": _SECONDS,
        },
    )


def _with_user_info(provider: Any, token: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the claims of the ID token, with those that the provider keeps elsewhere."""
    claims: Mapping[str, Any] | None = token.get("userinfo")
    if claims is None:
        raise ValueError("the answer has no ID token")
    if "email" in claims or not provider.load_server_metadata().get("userinfo_endpoint"):
        return claims

    info = provider.userinfo(token=token)
    if info.get("sub") != claims["sub"]:
        raise ValueError("the user info is of another subject")

    return {**info, **claims}


def _unavailable(error: Exception) -> Unavailable:
    _log.warning("the provider did not answer: %s", error)
    return Unavailable(
        f"{provider_label()} does not answer; log in again in a minute, and tell an administrator "
        "if that does not help",
        wait=60,
    )

"""Read the server's address, token and defaults from arguments, the environment and files.

For each field, the first of these that has it wins.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from configparser import ConfigParser, Error
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .errors import BadConfig, suggestion

_PREFIX = "evh_"
_API = "/api/v1"
# Set by the working directory: a token there would be committed with it.
_SHARED = ("url", "team", "collection")
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


_log = logging.getLogger("evalhub_client")


@dataclass(frozen=True)
class Config:
    """The server's address without `/api/v1`, the token or "", and the defaults."""

    url: str
    token: str
    profile: str
    team: str = ""
    collection: str = ""
    format: str = ""


def config_file(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return the path of the file of profiles."""
    if path := environment.get("EVH_CONFIG"):
        return Path(path)

    if platform == "win32":
        folder = environment.get("APPDATA") or Path.home() / "AppData" / "Roaming"
    else:
        folder = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "evh" / "config.ini"


def read_config(
    *,
    url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    profile: str | None = None,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Config:
    """Return the configuration.

    Raise BadConfig if there is no address, or one that the token must not be sent to.
    """
    if token_file:
        try:
            token = Path(token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadConfig(f"the token cannot be read from {token_file}: {error}") from error

    profile_name = profile_of(profile, environment)
    profiles = _read_profiles(config_file(environment))
    if (profile or environment.get("EVH_PROFILE")) and not profiles.has_section(profile_name):
        hint = suggestion(profile_name, profiles.sections())
        hint = hint or f"; evh login --profile {profile_name} makes it"
        raise BadConfig(f"there is no profile {profile_name!r} in {config_file(environment)}{hint}")

    own = dict(profiles[profile_name]) if profiles.has_section(profile_name) else {}
    shared = _read_shared(folder or Path.cwd())

    def setting(name: str) -> str:
        return environment.get(f"EVH_{name.upper()}") or shared.get(name) or own.get(name, "")

    address = (
        url
        or environment.get("EVH_URL")
        or environment.get("EVALHUB_URL")
        or shared.get("url")
        or own.get("url", "")
    )
    if not address:
        raise BadConfig("no server is known; run evh login --url https://HOST, or set EVH_URL")

    server = checked_url(address, insecure=own.get("insecure", "").lower() == "true")

    # Other programs use EVALHUB_TOKEN, too; their tokens are not sent to this server.
    other_token = environment.get("EVALHUB_TOKEN", "")
    if other_token and not other_token.startswith(_PREFIX):
        _log.info("EVALHUB_TOKEN is not used: a token of EvalHub begins with %s", _PREFIX)
        other_token = ""

    # Whoever writes .evh.ini must not receive a token that was meant for another server.
    environment_token = environment.get("EVH_TOKEN", "") or other_token
    own_server = same_host(server, own.get("url", ""))
    if environment_token and not token and address == shared.get("url") and not own_server:
        raise BadConfig(
            f"the address {address} comes from .evh.ini alone; set EVH_URL to send your token there"
        )

    token = token or environment_token
    if not token and own_server:
        token = own.get("token", "") or _run_token_command(own.get("token_command", ""))

    defaults = [setting(name) for name in ("team", "collection", "format")]
    return Config(server, token, profile_name, *defaults)


def profile_of(profile: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the name of the profile that is used."""
    return profile or environment.get("EVH_PROFILE") or "default"


def checked_url(text: str, *, insecure: bool = False) -> str:
    """Return a server's address without `/api/v1` and the final slash.

    Raise BadConfig for text that is not an address, and for plain HTTP to another machine, which
    would show the token to everybody on the way.
    """
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadConfig(f"{text!r} is not the address of a server; write it as https://HOST")
    if parts.scheme == "http" and parts.hostname not in _LOCAL_HOSTS and not insecure:
        raise BadConfig(
            f"{text} would send the token unencrypted; use https, or insecure = true in the profile"
        )

    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(_API)}"


def same_host(first: str, second: str) -> bool:
    """Return whether two addresses are on one server: a profile's token is sent to no other."""
    return urlsplit(first)[:2] == urlsplit(second)[:2]


def write_profile(profile: str, values: Mapping[str, str], path: Path | None = None) -> Path:
    """Write a profile into a file that only its owner can read, and return the path of the file.

    An empty value removes the field.
    """
    path = path or config_file()
    profiles = _read_profiles(path)
    if not profiles.has_section(profile):
        profiles.add_section(profile)

    for name, value in values.items():
        if value:
            profiles.set(profile, name, value)
        else:
            profiles.remove_option(profile, name)

    # A new file with mode 0600 takes the place of the old one at once.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".config-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        profiles.write(file)

    Path(temporary).replace(path)
    return path


def _read_profiles(path: Path) -> ConfigParser:
    profiles = ConfigParser(interpolation=None)
    try:
        with path.open(encoding="utf-8") as file:
            profiles.read_file(file)
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                sys.stderr.write(
                    f"evh: others can read {path}, which may hold a token; chmod 600 it\n"
                )
    except FileNotFoundError:
        pass
    except (Error, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} cannot be read: {error}") from error

    return profiles


def _read_shared(folder: Path) -> dict[str, str]:
    """Return the fields of the nearest `.evh.ini` in a folder or above it.

    Raise BadConfig for a field such as a token, which must not be shared.
    """
    paths = (parent / ".evh.ini" for parent in (folder, *folder.parents))
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return {}

    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (Error, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} cannot be read: {error}") from error

    fields = dict(parser["default"]) if parser.has_section("default") else {}
    if private := sorted(set(fields) - set(_SHARED)):
        raise BadConfig(
            f"{path} may set {', '.join(_SHARED)}, not {', '.join(private)}: it is shared "
            "with others"
        )
    return fields


def _run_token_command(command: str, platform: str = sys.platform) -> str:
    """Return the token that a command prints, such as `pass show evalhub`."""
    if not command:
        return ""

    # Paths of Windows have backslashes.
    words = shlex.split(command, posix=platform != "win32")
    try:
        process = subprocess.run(words, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadConfig(f"token_command of the profile failed: {error}") from error

    return process.stdout.strip()

"""Where the server is and who asks: arguments, the environment, a file. Each field by itself, the first one wins."""

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
    """What a client needs to ask: the server's address without `/api/v1`, the token or "", the defaults."""

    url: str
    token: str
    profile: str
    team: str = ""
    collection: str = ""
    format: str = ""


def config_file(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return the path of the file of profiles."""
    if named := environment.get("EVH_CONFIG"):
        return Path(named)
    if platform == "win32":
        return (
            Path(environment.get("APPDATA") or Path.home() / "AppData" / "Roaming")
            / "evh"
            / "config.ini"
        )

    return (
        Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "evh" / "config.ini"
    )


def read_config(
    *,
    url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    profile: str | None = None,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Config:
    """Return the configuration; BadConfig where there is no address, or one that a token must not be sent to."""
    if token_file:
        try:
            token = Path(token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadConfig(f"the token cannot be read from {token_file}: {error}") from error

    named = profile_of(profile, environment)
    kept = _profiles(config_file(environment))
    if (profile or environment.get("EVH_PROFILE")) and not kept.has_section(named):
        near = suggestion(named, kept.sections()) or f"; evh login --profile {named} makes it"
        raise BadConfig(f"there is no profile {named!r} in {config_file(environment)}{near}")

    own = dict(kept[named]) if kept.has_section(named) else {}
    shared = _of_folder(folder or Path.cwd())

    def setting(name: str) -> str:
        return environment.get(f"EVH_{name.upper()}") or shared.get(name) or own.get(name, "")

    found = (
        url
        or environment.get("EVH_URL")
        or environment.get("EVALHUB_URL")
        or shared.get("url")
        or own.get("url", "")
    )

    if not found:
        raise BadConfig("no server is known; run evh login --url https://HOST, or set EVH_URL")

    address = checked_url(found, insecure=own.get("insecure", "").lower() == "true")
    given = environment.get("EVH_TOKEN", "")
    other = environment.get("EVALHUB_TOKEN", "")
    # The other variable is known to other programs, whose tokens are not sent to this server.
    if other and not other.startswith(_PREFIX):
        _log.info("EVALHUB_TOKEN is not used: a token of EvalHub begins with %s", _PREFIX)
        other = ""

    given = given or other
    known = same_host(address, own.get("url", ""))
    if given and not token and found == shared.get("url") and not known:
        raise BadConfig(
            f"the address {found} comes from .evh.ini alone; set EVH_URL to send your token there"
        )

    secret = token or given
    if not secret and known:
        secret = own.get("token", "") or _asked(own.get("token_command", ""))

    return Config(address, secret, named, setting("team"), setting("collection"), setting("format"))


def profile_of(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the name of the profile that is used."""
    return given or environment.get("EVH_PROFILE") or "default"


def checked_url(text: str, *, insecure: bool = False) -> str:
    """Return a server's address without `/api/v1` and final slash; BadConfig for what is none, and for plain HTTP to
    another machine, which would show the token to everybody between."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadConfig(f"{text!r} is not the address of a server; write it as https://HOST")
    if parts.scheme == "http" and parts.hostname not in _LOCAL_HOSTS and not insecure:
        raise BadConfig(
            f"{text} would send the token unencrypted; use https, or insecure = true in the profile"
        )

    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(_API)}"


def same_host(first: str, second: str) -> bool:
    """Whether two addresses are of one server: a profile's token goes to no other."""
    return urlsplit(first)[:2] == urlsplit(second)[:2]


def write_profile(profile: str, values: Mapping[str, str], path: Path | None = None) -> Path:
    """Write a profile, readable by its owner alone; an empty value takes the field away. Returns the file."""
    path = path or config_file()
    kept = _profiles(path)
    if not kept.has_section(profile):
        kept.add_section(profile)

    for name, value in values.items():
        if value:
            kept.set(profile, name, value)
        else:
            kept.remove_option(profile, name)

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The file is new, of mode 0600, and takes the name of the old one at once.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".config-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        kept.write(file)

    Path(temporary).replace(path)
    return path


def _profiles(path: Path) -> ConfigParser:
    kept = ConfigParser(interpolation=None)
    try:
        with path.open(encoding="utf-8") as file:
            kept.read_file(file)
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                sys.stderr.write(
                    f"evh: others can read {path}, which may hold a token; chmod 600 it\n"
                )
    except FileNotFoundError:
        pass
    except (Error, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} cannot be read: {error}") from error

    return kept


def _of_folder(folder: Path) -> dict[str, str]:
    """Return what the nearest `.evh.ini` of a folder and those above it sets; BadConfig for a token in it."""
    for parent in (folder, *folder.parents):
        path = parent / ".evh.ini"
        if path.is_file():
            kept = ConfigParser(interpolation=None)
            try:
                kept.read_string(path.read_text(encoding="utf-8"))
            except (Error, UnicodeDecodeError) as error:
                raise BadConfig(f"{path} cannot be read: {error}") from error

            found = dict(kept["default"]) if kept.has_section("default") else {}
            if wrong := sorted(set(found) - set(_SHARED)):
                raise BadConfig(
                    f"{path} may set {', '.join(_SHARED)}, not {', '.join(wrong)}: it is shared "
                    "with others"
                )
            return found

    return {}


def _asked(command: str, platform: str = sys.platform) -> str:
    """Return the token that a command prints, such as `pass show evalhub`."""
    if not command:
        return ""

    # Paths of Windows have backslashes.
    words = shlex.split(command, posix=platform != "win32")
    try:
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadConfig(f"token_command of the profile failed: {error}") from error

    return done.stdout.strip()

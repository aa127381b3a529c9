"""Commands about accounts, and those for anything without a command of its own."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

from . import commands
from .commands import say, show
from .config import Config, checked_url, profile_of, read_config, write_profile
from .errors import EvalHubError, WrongOption
from .hub import Hub
from .runs import run_id_in
from .statuses import DONE


def login(args: argparse.Namespace) -> int:
    """Ask for a token without showing it, check it, and keep it in the file of profiles."""
    profile = profile_of(args.profile)
    if args.url:
        url = checked_url(args.url, insecure=args.insecure)
    else:
        url = read_config(profile=args.profile).url

    if args.token_file:
        token = read_config(url=url, token_file=args.token_file).token
    elif sys.stdin.isatty():
        say(f"Create a token at {url}/tokens/ and paste it here; it is not shown.")
        token = getpass.getpass("Token: ").strip()
    else:
        token = sys.stdin.readline().strip()

    if not token:
        raise WrongOption(
            "no token was given; create one on the page of your tokens, and paste it when asked"
        )

    with Hub(Config(url, token, profile)) as hub:
        me = hub.me()

    values = {"url": url, "token": token, "insecure": "true" if args.insecure else ""}
    path = write_profile(profile, values)
    teams = ", ".join(f"{team['slug']} ({team['role']})" for team in me.teams)
    scopes, expires = ", ".join(me.token["scopes"]), me.token["expires_at"] or "never"
    say(
        f"Logged in to {url} as {me.username}. Teams: {teams}. Scopes: {scopes}. Expires: "
        f"{expires}. Kept in {path}."
    )

    for name in ("EVH_URL", "EVH_TOKEN"):
        if os.environ.get(name):
            say(f"{name} is set and comes before the profile; unset it to use what was kept.")

    return DONE


def logout(args: argparse.Namespace) -> int:
    """Forget the token of a profile; with --revoke the server forgets it, too."""
    profile = profile_of(args.profile)
    if args.revoke:
        # Without the environment, the token is that of the profile.
        environment = {**os.environ, "EVH_TOKEN": "", "EVALHUB_TOKEN": ""}
        with Hub(read_config(profile=profile, environment=environment)) as hub:
            hub.request("DELETE", f"tokens/{hub.me().token['key']}/")

    path = write_profile(profile, {"token": ""})
    say(
        f"The token of profile {profile} is {'revoked and ' if args.revoke else ''}gone from "
        f"{path}."
    )
    return DONE


def whoami(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        me = hub.me()
        token = me.token or {}
        teams = " ".join(f"{team['slug']}:{team['role']}" for team in me.teams)
        scopes = " ".join(token.get("scopes", []))
        row = {"url": hub.url, "user": me.username, "teams": teams}
        row |= {"token": token.get("key"), "scopes": scopes, "expires_at": token.get("expires_at")}
        show(args, [row], hub, upright=True)

    return DONE


def open_page(args: argparse.Namespace) -> int:
    with commands.hub_of(args) as hub:
        slug, (name,) = commands.names_of(args, hub, single=True)
        page = hub.collection(name).page
        if run_id_in(name) or slug:
            page = hub.run(name, slug).page

    sys.stdout.write(f"{page}\n")
    webbrowser.open(page)
    return DONE


def api(args: argparse.Namespace) -> int:
    """Send any request, with token and retries, and write the response."""
    fields = dict(_pair("-f", pair) for pair in args.field)
    files = {}
    for pair in args.file:
        name, text = _pair("-F", pair)
        if not text.startswith("@"):
            raise WrongOption(f"-F {pair}: write it as K=@FILE; write another field as -f K=V")
        files[name] = sys.stdin.buffer.read() if text == "@-" else Path(text[1:])

    body = None
    if args.input:
        standard_input = args.input == "-"
        text = sys.stdin.read() if standard_input else Path(args.input).read_text(encoding="utf-8")
        try:
            body = json.loads(text)
        except ValueError as error:
            raise WrongOption(f"--input {args.input} is not JSON: {error}") from error

    # Fields are parameters where a request has no form.
    has_no_form = args.method.upper() in ("GET", "HEAD", "DELETE") or body is not None
    options: dict[str, Any] = {"params": fields if has_no_form else None}
    if files:
        options["fields"] = fields
    elif not has_no_form:
        body = fields

    path = args.path.partition("/api/v1/")[2] or args.path
    with commands.hub_of(args) as hub:
        response = hub.request(args.method, path, json=body, files=files, key=args.key, **options)

    sys.stdout.buffer.write(response.content)
    if not response.content.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    return DONE


def _pair(option: str, text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise WrongOption(f"{option} {text}: write it as K=V")
    return name, value


def mcp(args: argparse.Namespace) -> int:
    """Serve the Model Context Protocol on standard input and output until it is closed."""
    try:
        from .mcp import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise EvalHubError(
            "evh mcp needs another library: pip install 'evalhub-client[mcp]'"
        ) from error

    config = read_config(url=args.url, profile=args.profile, token_file=args.token_file)
    # A person waits for each answer, so that retries end early.
    with Hub(config, retry_for=20.0) as hub:
        server(hub, allow_submit=args.allow_submit).run("stdio")

    return DONE

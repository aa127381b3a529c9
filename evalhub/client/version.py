"""The version of this client; a server's `GET version/` says in `least_client` which is the oldest that it serves."""

VERSION = "0.1.0"

"""The command without its script: `python -m evalhub_client`."""

from .cli import main

main()

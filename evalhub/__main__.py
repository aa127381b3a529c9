"""`python -m evalhub` is the evalhub command."""

from evalhub.cli import main

if __name__ == "__main__":
    main()

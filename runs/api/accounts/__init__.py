"""The API of teams and tokens."""

"""Django's SQLite with a fairer wait for the right to write."""

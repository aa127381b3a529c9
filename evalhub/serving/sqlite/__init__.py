"""Django's SQLite backend with a fairer wait for the write lock."""

"""Commands that work on files alone: no server, no database, no Django."""

"""Accounts, teams, invitations and tokens."""

"""Webhooks: events are written down with their cause, and sent by the workers."""

"""The API of the audit trail."""

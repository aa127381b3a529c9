"""Which code scans a file: the compiled kernel."""

from runs.formats.kernel import find_duplicates, last_topic, scan

__all__ = ["find_duplicates", "last_topic", "scan"]

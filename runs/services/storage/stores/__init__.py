"""Stores for uploaded files: the folder of `EVALHUB_DATA`, or an object store."""

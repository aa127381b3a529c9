"""The recurring tasks of workers: dispatching, checking, counting."""

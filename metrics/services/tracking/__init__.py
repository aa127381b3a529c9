"""Parameters of runs: what differs, what explains values, and progress over versions."""

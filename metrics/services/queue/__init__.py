"""The path of work through the database: states, leases and the queue."""

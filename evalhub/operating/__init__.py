"""What an operator needs: backups, checks, probes, logs, gauges."""

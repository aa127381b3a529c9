"""What depends on the values of entries: reference sets, own results, packets and snapshots."""

"""What requests name and ask of pools."""

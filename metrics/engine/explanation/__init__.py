"""What goes with a measure: runs whose settings are known, compared value by value."""

"""What one run is worth: judged views, values, curves, rankings."""

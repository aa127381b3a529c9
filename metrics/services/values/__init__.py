"""The values of one run: judged views, values, curves, rankings."""

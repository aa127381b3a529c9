"""The numeric core: rankings and judgements in, exact values out. NumPy and SciPy, nothing of ours above it."""

ENGINE_VERSION = "1"

"""Files and tables of pools."""

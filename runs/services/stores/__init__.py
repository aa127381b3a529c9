"""Where stored files are: the folder of `EVALHUB_DATA`, behind an interface that other places can have too."""

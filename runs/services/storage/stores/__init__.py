"""Where stored files are: in the folder of `EVALHUB_DATA`, or in the object store of `EVALHUB_FILES_URL`."""

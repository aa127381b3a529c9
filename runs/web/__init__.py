"""What the API and the pages of all apps share."""

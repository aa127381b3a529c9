"""What requests ask of the results of campaigns, read in the same way for API and pages."""

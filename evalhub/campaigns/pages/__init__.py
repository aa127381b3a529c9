"""The pages of campaigns: the public one, the organisers' desk and the team's desk."""

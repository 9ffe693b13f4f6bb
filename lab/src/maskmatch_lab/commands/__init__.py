"""Commands that the lab adds to the command line of maskmatch."""

"""The doors: each translates between the outside and the tools, and decides nothing."""

"""Which paths LiveSync's own filters leave out."""

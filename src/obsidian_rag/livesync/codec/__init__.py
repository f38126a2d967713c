"""Files as LiveSync keeps them, and back: to the byte what the other devices write."""

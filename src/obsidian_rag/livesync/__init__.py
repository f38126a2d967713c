"""A headless node of a LiveSync network: two-way sync of one vault with a CouchDB database."""

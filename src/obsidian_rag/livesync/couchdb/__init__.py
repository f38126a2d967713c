"""A CouchDB server and what it says: requests, answers, logging in, and the feed of changes."""

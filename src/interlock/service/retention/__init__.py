"""How long sessions are kept, and the deletion of those that are due."""

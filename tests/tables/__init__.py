"""Records in users' tables, on every database."""

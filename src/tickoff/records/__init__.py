"""Records: rows worked once, by all servers together. Policy and loops; `tables` keeps what they decide."""

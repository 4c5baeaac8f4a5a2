"""Records: policy, loops, and what all servers do with them."""

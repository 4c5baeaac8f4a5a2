"""A name, won for a while: races, the lease in the winner's hands, and who keeps it from running out."""

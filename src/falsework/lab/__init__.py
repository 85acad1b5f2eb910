"""A lab: what one site has on this host, where it is kept, and the list of what was made for it."""

"""What runs on the bootstrap machine: the temporary control plane and those who watch over it."""

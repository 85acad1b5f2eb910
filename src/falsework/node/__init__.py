"""What runs on the nodes: the daemon that puts in place what the control plane wants there."""

"""The dns operator: names of Services and pods resolve in all pods, and other names as they do on the nodes."""

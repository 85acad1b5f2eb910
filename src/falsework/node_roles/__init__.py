"""Which role a Node has: given by somebody with the right to, because a kubelet may not say so itself."""

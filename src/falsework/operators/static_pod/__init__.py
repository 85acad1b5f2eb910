"""What runs on the masters as static pods: inputs become numbered revisions, and these reach the nodes one by one."""

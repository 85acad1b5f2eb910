"""The helper: the machine with DNS, DHCP, TFTP, HTTP, load balancer, registry and NFS, and the facts it serves."""

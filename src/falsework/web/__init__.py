"""The HTTP server in machines: one loop for plain and TLS connections. The standard library alone."""

"""Certificates that are renewed before they end, and signers that are replaced without anybody being locked out."""

"""What is on the machines: configs rendered, served and followed, pool by pool."""

"""Scripts with which shells complete our commands, made from the command line's own description of itself."""

"""Questions to running things whose answers are conditions: of stages, of status, of diagnosis."""

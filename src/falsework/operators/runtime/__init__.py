"""What all operators are made of: a program, its controllers, conditions, one leader at a time, a log, events."""

"""What tests of tracked runs share: the command in front of real scripts, with a state folder of its own."""

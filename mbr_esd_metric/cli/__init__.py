"""The command line: `mbr-esd`. Each verb has two functions, one that adds its arguments and one that does the work."""

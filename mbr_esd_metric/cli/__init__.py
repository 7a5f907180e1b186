"""The command line, `mbr-esd`. Each verb has two functions: one adds its arguments, the other runs it."""

"""The command line: one module a command, none of which imports the library before it is run."""

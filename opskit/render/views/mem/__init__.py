"""How memory is shown: of a process, of the machine (host.py), of files (files.py)."""

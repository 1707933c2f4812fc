"""Reports of the OOM killer: lines of any log, the kernel's reports in them, and what other programs write about kills."""

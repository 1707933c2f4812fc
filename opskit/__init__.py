"""opskit: what a Linux host and its JVMs are suffering from, and what to type next."""

__version__ = "0.1.0"

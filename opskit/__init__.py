"""opskit: diagnose Linux hosts and the JVMs on them."""

__version__ = "0.1.0"

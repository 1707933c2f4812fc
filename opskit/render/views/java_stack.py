"""Where a thread is, in words: see opskit.analysis.java_stack."""

from opskit.analysis.java_stack import where_in_java

__all__ = ["where_in_java"]

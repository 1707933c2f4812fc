"""From when on a share is a finding, where several commands give it."""

GC_SHARE = 0.1  # of the time in GC pauses: more delays every answer
MEMORY_STALL_SHARE = 0.05  # of ten seconds or a minute, in which some task waited for memory
IO_LIMIT_SHARE = 0.9  # of an I/O limit of a cgroup is used

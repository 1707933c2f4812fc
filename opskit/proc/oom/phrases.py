r"""The kernel's sentences about an OOM kill, 3.10 to 6.18 (mm/oom_kill.c, mm/memcontrol.c, mm/show_mem.c, lib/dump_stack.c).

java invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0                      3.10
java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0         5.0
CPU: 1 PID: 4242 Comm: java Not tainted 5.10.0 #1                                     since 6.12 with `UID: 0`
Task in /a/b killed as a result of limit of /a                                        until 4.20
memory: usage 409600kB, limit 409600kB, failcnt 24                                    swap: v2; memory+swap: and kmem: v1
Memory cgroup stats for /a: cache:0KB rss:408000KB …                                  3.10 to 5.1
Memory cgroup stats for /a:\nanon 417792000\nfile 0 …                                 since 5.2
[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name             4.1 to 4.14: nr_ptes nr_pmds
[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name    since 4.15; 6.8: rss_anon rss_file rss_shmem
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=java,pid=4242,uid=0
Memory cgroup out of memory: Kill process 4242 (java) score 990 or sacrifice child    until 5.0
Killed process 4242 (java) total-vm:2703268kB, anon-rss:408000kB, file-rss:1024kB     4.4: shmem-rss; RHEL: `, UID 1000,`
Memory cgroup out of memory: Killed process 4242 (java) total-vm:…kB, …, UID:0 pgtables:184kB oom_score_adj:0
Tasks in /a are going to be killed due to memory.oom.group set

A name is at most 15 bytes, a newline in it is `\x0a`. What follows a name is matched from its last occurrence on.
"""

from __future__ import annotations

import re

_NAME = r"(.{0,64})"  # 15 bytes, each of which may be escaped
_NUMBER = r"(\d{1,19})"
INVOKED = re.compile(rf"{_NAME} invoked oom-killer: (?=.{{0,400}}order=)(.*)")
GFP = re.compile(r"gfp_mask=(0x[0-9a-f]{1,16}(?:\([A-Z_|a-z0-9]{1,300}\))?)")
ORDER = re.compile(r"order=(-?\d{1,4})")
INVOKER = re.compile(rf"CPU: \d{{1,6}} (?:UID: \d{{1,10}} )?PID: (\d{{1,10}}) Comm: {_NAME}")
LIMIT_OF = re.compile(r"Task in (/.*) killed as a result of limit of (/.*)")
USAGE = re.compile(rf"(memory|memory\+swap|swap|kmem): usage {_NUMBER}kB, limit {_NUMBER}kB, failcnt {_NUMBER}")
STATS_OF = re.compile(r"Memory cgroup stats for (/.{0,4096}?):(?: ?((?:[a-z_0-9()]{1,40}:\d{1,19}KB ?){1,60}))?$")
STAT = re.compile(r"([a-z_0-9()]{1,40}):(\d{1,19})KB")
STAT_LINE = re.compile(r"([a-z_0-9]{1,40}) (\d{1,19})")
HEADER = re.compile(r"\[ *pid *\] +(uid +tgid +total_vm +rss [a-z_ ]{1,200}) name")
NUMBERS = re.compile(r"\[ *(\d{1,10})\] +((?:-?\d{1,19} +){5,16})(.{0,64})")
CONTEXT = re.compile(r"oom-kill:constraint=(CONSTRAINT_[A-Z_]{1,40}),(.*)")
CONTEXT_END = re.compile(rf"(.*),task={_NAME},pid=(\d{{1,10}}),uid=(\d{{1,10}})")
_WHY = r"(Memory cgroup out of memory|Out of memory(?: \([^()]{1,60}\))?)"
CHOSEN = re.compile(rf"{_WHY}: Kill process (\d{{1,10}}) \({_NAME}\) score (\d{{1,10}}) or sacrifice child")
KILLED = re.compile(
    rf"(?:{_WHY}: )?Killed process (\d{{1,10}})(?:, UID (\d{{1,10}}),)? \({_NAME}\)(?:, UID (\d{{1,10}}),)? total-vm:{_NUMBER}kB,"
    rf" anon-rss:{_NUMBER}kB(?:, file-rss:{_NUMBER}kB)?(?:, shmem-rss:{_NUMBER}kB)?"
)
# Cut off, or broken by a line feed in the name.
KILLED_CUT = re.compile(
    rf"(?:{_WHY}: )?Killed process (\d{{1,10}}) \((.{{0,64}}?)(?:\)(?: total-vm.{{0,200}}|, UID .{{0,200}})?)?$"
)
AFTER_KILLED = re.compile(r"(?:, UID:(\d{1,10}))?(?: pgtables:(\d{1,19})kB)?(?: oom_score_adj:(-?\d{1,5}))?")
GROUP = re.compile(r"Tasks in (/.*) are going to be killed due to memory\.oom\.group set")
REAPED = re.compile(rf"oom_reaper: reaped process (\d{{1,10}}) \({_NAME}\), now ")
MANUAL = re.compile(r"(?:sysrq: )?(?:SysRq : )?Manual OOM execution")
PANIC = re.compile(r"Kernel panic - not syncing: (?:Out of memory|System is deadlocked on memory)(.{0,80})")
NO_VICTIM = re.compile(r"(?:Memory cgroup out of memory: |Out of memory and )no killable process")
PAGES = re.compile(r"([a-z_]{1,40}):(\d{1,19})(?![\dk])")
SWAP = re.compile(rf"(Free|Total) swap {{1,4}}= {{0,4}}{_NUMBER}kB")
RAM = re.compile(rf"{_NUMBER} pages (RAM|reserved)")
HUGE = re.compile(
    rf"(?:Node \d{{1,5}} )?hugepages_total={_NUMBER} hugepages_free={_NUMBER} .{{0,80}}hugepages_size={_NUMBER}kB"
)
MEM_INFO = re.compile(
    r"(?:(?:active|inactive|isolated)_(?:anon|file)|unevictable|slab_reclaimable|mapped|sec_pagetables|kernel_misc_reclaimable|free|pagecache):\d"
)
MEMCG_MESSAGE = "Memory cgroup out of memory"

"""A dump of three threads and one of the VM, and the same a little later: 100 ms and 10 ms of CPU in between."""

from __future__ import annotations

DUMP = """\
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode):

"main" #1 prio=5 os_prio=0 cpu=10.00ms elapsed=1.00s tid=0x1 nid=0x1 runnable  [0x1]
   java.lang.Thread.State: RUNNABLE
	at java.util.HashMap.get(java.base@17.0.15/HashMap.java:552)
	at com.example.Main$$Lambda$14/0x0000000800c03000.run(Unknown Source)
	at com.example.Main.main(Main.java:10)

"pool-1-thread-1" #2 prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x2 nid=0x2 waiting on condition  [0x2]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
	- parking to wait for  <0x0000000500000001> (a java.lang.Object)
	at java.util.concurrent.ThreadPoolExecutor.getTask(java.base@17.0.15/ThreadPoolExecutor.java:1062)

"pool-1-thread-2; x" #3 prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x3 nid=0x3 waiting on condition  [0x3]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
	- parking to wait for  <0x0000000500000002> (a java.lang.Object)
	at java.util.concurrent.ThreadPoolExecutor.getTask(java.base@17.0.15/ThreadPoolExecutor.java:1062)

"GC Thread#0" os_prio=0 cpu=5.00ms elapsed=1.00s tid=0x4 nid=0x4 runnable

JNI global refs: 26, weak refs: 0

"""
LATER = DUMP.replace("cpu=10.00ms", "cpu=110.00ms").replace("cpu=5.00ms", "cpu=15.00ms")

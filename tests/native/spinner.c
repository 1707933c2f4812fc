/* A thread that wants all of a CPU: `spinner CPU`. Prints, each 50 ms, in ns: the monotonic time, the time that it has lost so far (the gaps
   of 0.5 us or more between two readings of the clock), and its CPU time, which interrupts are a part of. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int count, char **words)
{
    cpu_set_t set;
    long long last, lost = 0, due;
    if (count != 2)
        return 2;
    CPU_ZERO(&set);
    CPU_SET(atoi(words[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return 1;
    due = last = now(CLOCK_MONOTONIC);
    for (;;) {
        long long at = now(CLOCK_MONOTONIC);
        if (at - last >= 500)
            lost += at - last;
        if (at >= due) {
            printf("%lld %lld %lld\n", at, lost, now(CLOCK_THREAD_CPUTIME_ID));
            fflush(stdout);
            due = at + 50000000; /* what passes meanwhile is a gap: the kernel may run others when the call ends */
        }
        last = at;
    }
}

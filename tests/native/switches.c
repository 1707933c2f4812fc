/* The cost of a system call and of a process switch, in ns: `switches CPU CPU BATCHES [WORKING_SET_BYTES [ROUND_TRIPS]]`, -1: not pinned.

   Two processes send a byte there and back by pipes; the same calls on a pipe to itself are subtracted. With a working set each
   process overwrites its own memory before it wakes the other one. Prints
   `syscall MIN MEDIAN switch MIN MEDIAN counted PER_ROUND_TRIP`, divided by the switches that the kernel counted. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 1000

static int trips = 100;
static long bytes;
static char *memory;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    if (cpu < 0) return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) exit(2);
}

static void touch(void) {
    if (bytes) memset(memory, 2, bytes);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static long switches(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_nvcsw + use.ru_nivcsw;
}

int main(int count, char **words) {
    int batches = atoi(words[3]), there[2], back[2], own[2];
    double trip[MOST], alone[MOST], call[MOST], counted = 0;
    char byte = 'x';
    long theirs;
    if (batches > MOST || pipe(there) || pipe(back) || pipe(own)) return 1;
    bytes = count > 4 ? atol(words[4]) : 0;
    if (count > 5) trips = atoi(words[5]);
    if (bytes) memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!fork()) {
        close(there[1]);
        pin(atoi(words[2]));
        touch();
        long before = switches();
        while (read(there[0], &byte, 1) == 1) {
            touch();
            if (write(back[1], &byte, 1) != 1) _exit(1);
        }
        long passed = switches() - before;
        _exit(write(back[1], &passed, sizeof passed) < 0);
    }
    close(there[0]);
    pin(atoi(words[1]));
    touch();
    for (int batch = 0; batch < batches; batch++) {
        double begun = now();
        for (int i = 0; i < trips; i++) {
            touch();
            if (write(own[1], &byte, 1) != 1 || read(own[0], &byte, 1) != 1) return 1;
        }
        alone[batch] = (now() - begun) / trips;
        long before = switches();
        begun = now();
        for (int i = 0; i < trips; i++) {
            touch();
            if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
        }
        trip[batch] = (now() - begun) / trips;
        counted += switches() - before;
        begun = now();
        for (int i = 0; i < 100; i++) syscall(SYS_getppid);
        call[batch] = (now() - begun) / 100;
    }
    close(there[1]);
    if (read(back[0], &theirs, sizeof theirs) != sizeof theirs) return 1;
    wait(NULL);
    counted = (counted + theirs) / batches / trips;
    qsort(trip, batches, sizeof *trip, compare);
    qsort(alone, batches, sizeof *alone, compare);
    qsort(call, batches, sizeof *call, compare);
    printf("syscall %.0f %.0f switch %.0f %.0f counted %.3f\n", call[0], call[batches / 2], (trip[0] - 2 * alone[0]) / counted,
           (trip[batches / 2] - 2 * alone[batches / 2]) / counted, counted);
    return 0;
}

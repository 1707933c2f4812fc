/* Threads that want the CPU: `threads MODE COUNT`. The threads have names of their own; prints a line when they run.

   burn: COUNT threads that spin. futex, pipe: two threads that wake each other in turn. steps: COUNT threads that sleep 2 ms and
   work 0.2 ms. short: a new thread of 5 ms after another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, there[2], back[2];

static void spin(long microseconds) {
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000L + (now.tv_nsec - begun.tv_nsec) / 1000 < microseconds);
}

static void *burn(void *number) { for (;;) spin(1000000); return number; }

static void *steps(void *number) { for (;;) { usleep(2000); spin(200); } return number; }

static void *few(void *number) { spin(5000); return number; }

static void *by_futex(void *number) {
    int own = (int)(long)number;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (turn != own) pthread_cond_wait(&changed, &lock);
        turn = !own;
        pthread_cond_signal(&changed);
    }
    return NULL;
}

static void *by_pipe(void *number) {
    char byte = 'x';
    for (;;) {
        if (!number && write(there[1], &byte, 1) != 1) return NULL;
        if (read(number ? there[0] : back[0], &byte, 1) != 1) return NULL;
        if (number && write(back[1], &byte, 1) != 1) return NULL;
    }
}

static void start(void *(*work)(void *), const char *prefix, long number) {
    char name[64];
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)number);
    snprintf(name, sizeof name, "%s-%ld", prefix, number);
    name[15] = 0;
    pthread_setname_np(thread, name);
}

int main(int count, char **words) {
    const char *mode = words[1];
    long threads = count > 2 ? atol(words[2]) : 2;
    void *(*work)(void *) = !strcmp(mode, "burn") ? burn : !strcmp(mode, "steps") ? steps : !strcmp(mode, "futex") ? by_futex : by_pipe;
    if (pipe(there) || pipe(back)) return 1;
    if (strcmp(mode, "short"))
        for (long i = 0; i < threads; i++) start(work, mode, i);
    puts("running");
    fflush(stdout);
    for (;;) {
        pthread_t one;
        if (strcmp(mode, "short")) { pause(); continue; }
        pthread_create(&one, NULL, few, NULL);
        pthread_join(one, NULL);
    }
}

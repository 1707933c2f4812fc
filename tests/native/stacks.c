#define _GNU_SOURCE
#include <alloca.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
volatile uint64_t sink;
static volatile int stop;
#define NOINLINE __attribute__((noinline))
NOINLINE void spin(int n) { for (int i = 0; i < n; i++) sink += i * 7; }
NOINLINE uint64_t deep(int n) { if (!n) { spin(20000); return sink; } return deep(n - 1) + 1; }
NOINLINE void in_alloca(int n) { char *p = alloca(n); memset(p, n, n); spin(20000); sink += p[n / 2]; }
NOINLINE void realigned(int n) { double v[64] __attribute__((aligned(64))); for (int i = 0; i < 64; i++) v[i] = i * n; spin(20000); char *p = alloca(n); p[0] = 1; sink += v[n & 63] + p[0]; }
NOINLINE void clock_loop(void) { struct timespec t; for (int i = 0; i < 1000; i++) { clock_gettime(CLOCK_MONOTONIC, &t); sink += t.tv_nsec; } }
static int compare(const void *a, const void *b) { int x = *(const int *)a, y = *(const int *)b; return (x > y) - (x < y); }
NOINLINE void sorting(void) { static int v[4000]; for (int i = 0; i < 4000; i++) v[i] = (i * 7919) % 4001; qsort(v, 4000, sizeof v[0], compare); sink += v[3]; }
NOINLINE void handler_work(int n) { spin(n); sink++; }
static void handler(int s) { handler_work(800000); sink++; }
NOINLINE void calls_plt(void) { for (int i = 0; i < 2000; i++) { char b[64]; memset(b, i, i & 63); sink += strtol("12345", 0, 10) + strlen(b); } }
static void *thread(void *a) { while (!stop) { deep(30); in_alloca(300 + (int)(sink & 255)); realigned(200); clock_loop(); sorting(); calls_plt(); } return 0; }
int main(int argc, char **argv) {
  struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART}; sigaction(SIGALRM, &sa, 0);
  struct itimerval it = {{0, 3000}, {0, 3000}}; setitimer(ITIMER_REAL, &it, 0);
  pthread_t t; pthread_create(&t, 0, thread, 0);
  thread(0); return 0; }

/* Threads that fill malloc's arenas and leave them fragmented; prints malloc_info, then sleeps.
   arenas THREADS BLOCKS BYTES KEEP_EACH LARGE_BLOCKS LARGE_BYTES [busy] */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int blocks, bytes, keep, busy;
static pthread_barrier_t filled;

static void *fill(void *unused) {
  char **all = malloc(blocks * sizeof *all);
  unsigned seed = (unsigned)(size_t)&unused;
  for (int n = 0; n < blocks; n++) {
    size_t size = bytes / 2 + rand_r(&seed) % bytes;
    all[n] = malloc(size);
    memset(all[n], 1, size);
  }
  for (int n = 0; n < blocks; n++)
    if (n % keep)
      free(all[n]);
  pthread_barrier_wait(&filled);
  while (busy) {
    char *some[64];
    for (int n = 0; n < 64; n++) some[n] = malloc(rand_r(&seed) % (2 * bytes) + 1);
    for (int n = 0; n < 64; n++) free(some[n]);
  }
  pause();
  return NULL;
}

int main(int count, char **words) {
  int threads = atoi(words[1]), large = atoi(words[5]);
  long large_bytes = atol(words[6]);
  blocks = atoi(words[2]), bytes = atoi(words[3]), keep = atoi(words[4]), busy = count > 7;
  pthread_barrier_init(&filled, NULL, threads + 1);
  for (int n = 0; n < threads; n++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fill, NULL)) return 1;
  }
  for (int n = 0; n < large; n++) memset(malloc(large_bytes), 1, large_bytes);
  char *kept = malloc(100);
  strcpy(kept, "kept");
  pthread_barrier_wait(&filled);
  if (!busy) malloc_info(0, stdout);
  puts("READY");
  fflush(stdout);
  pause();
}

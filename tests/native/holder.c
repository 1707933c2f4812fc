/* Holds memory of one kind: holder MODE=NUMBER[:SIZE][:NAME]... Sizes in MiB unless a mode says otherwise; all of it is touched.
 *
 * anon=S  mapped without a file               locked=S  the same, and locked
 * arenas=N:S  N threads malloc S each in blocks of 1,000 bytes; they and their arenas stay
 * fragments=N:S  the same, and they free seven blocks of eight
 * blocks=N:S  N blocks of malloc, large enough to be mapped
 * threads=N:K  N threads that touch K KiB of their stacks
 * hugestacks=N  N threads with stacks of 2 MiB that transparent huge pages may hold
 * huge=S  transparent huge pages              reserved=S  of the reserved huge pages (2 MiB each)
 * memfd=S  sysv=S  shm=S:NAME (/dev/shm/NAME)   file=S:PATH  mapped, and in the page cache
 * info=0:PATH  writes what malloc_info says there
 *
 * Prints READY when it is there. Each a on standard input adds 1 MiB of anonymous memory, each s 1 MiB of shared memory (answer: GREW).
 * It ends with its input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define BLOCK 1000

static pthread_barrier_t there;
static size_t size;
static int fragments;

static void check(int good, const char *what) {
  if (!good) {
    perror(what);
    exit(3);
  }
}

static void *map(size_t bytes, int flags, int fd) {
  void *at = mmap(0, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  check(at != MAP_FAILED, "mmap");
  return at;
}

static void *anonymous(size_t bytes) { return memset(map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1), 1, bytes); }

static void shared(int fd, size_t bytes) {
  check(fd >= 0 && ftruncate(fd, bytes) == 0, "shared");
  memset(map(bytes, MAP_SHARED, fd), 1, bytes);
}

static void *huge(size_t bytes) { /* aligned to 2 MiB: huge pages from its first byte on */
  uintptr_t at = (uintptr_t)map(bytes + 2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  void *aligned = (void *)((at + 2 * MIB - 1) & ~(2 * MIB - 1));
  check(madvise(aligned, bytes, MADV_HUGEPAGE) == 0, "madvise");
  return aligned;
}

static void wait_for_end(void) {
  pthread_barrier_wait(&there);
  for (;;) pause();
}

static void *allocate(void *unused) {
  size_t number = size / BLOCK;
  char **blocks = malloc(number * sizeof *blocks);
  for (size_t i = 0; i < number; i++) blocks[i] = memset(malloc(BLOCK), 1, BLOCK);
  for (size_t i = 0; fragments && i < number; i++)
    if (i % 8 != 7) free(blocks[i]);
  wait_for_end();
  return blocks;
}

static void *touch_stack(void *unused) {
  volatile char kept[size];
  for (size_t i = 0; i < size; i += 512) kept[i] = 1;
  wait_for_end();
  return 0;
}

static void threads(int number, void *(*body)(void *), int huge_stacks) {
  check(pthread_barrier_init(&there, 0, number + 1) == 0, "barrier");
  for (int i = 0; i < number; i++) {
    pthread_attr_t how;
    pthread_t thread;
    pthread_attr_init(&how);
    if (huge_stacks) pthread_attr_setstack(&how, huge(2 * MIB), 2 * MIB);
    check(pthread_create(&thread, &how, body, 0) == 0, "pthread_create");
  }
  pthread_barrier_wait(&there);
  pthread_barrier_destroy(&there);
}

static void hold(const char *mode, long number, long amount, const char *name) {
#define IS(word) (strcmp(mode, word) == 0)
  size_t bytes = number * MIB;
  size = amount * MIB;
  fragments = IS("fragments");
  if (IS("anon")) anonymous(bytes);
  else if (IS("locked")) check(mlock(anonymous(bytes), bytes) == 0, "mlock");
  else if (IS("arenas") || IS("fragments")) threads(number, allocate, 0);
  else if (IS("blocks")) for (long i = 0; i < number; i++) memset(malloc(size), 1, size);
  else if (IS("threads")) { size = amount << 10; threads(number, touch_stack, 0); }
  else if (IS("hugestacks")) { size = 4096; threads(number, touch_stack, 1); }
  else if (IS("huge")) memset(huge(bytes), 1, bytes);
  else if (IS("reserved")) memset(map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1), 1, bytes);
  else if (IS("memfd")) shared(memfd_create("holder", 0), bytes);
  else if (IS("shm")) shared(shm_open(name, O_RDWR | O_CREAT, 0600), bytes);
  else if (IS("sysv")) {
    int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    void *at = shmat(id, 0, 0);
    check(at != (void *)-1 && shmctl(id, IPC_RMID, 0) == 0, "shm");
    memset(at, 1, bytes);
  } else if (IS("file")) shared(open(name, O_RDWR | O_CREAT, 0600), bytes);
  else if (IS("info")) {
    FILE *out = fopen(name, "w");
    check(out && malloc_info(0, out) == 0 && fclose(out) == 0, name);
  } else check(0, mode);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    char mode[32] = "", name[4096] = "";
    long number = 0, amount = 0;
    check(sscanf(argv[i], "%31[a-z]=%ld:%ld", mode, &number, &amount) >= 2, argv[i]);
    sscanf(argv[i], "%*[a-z]=%*d:%4095s", name);
    hold(mode, number, amount, name);
  }
  puts("READY");
  fflush(stdout);
  for (int asked; (asked = getchar()) != EOF;) {
    if (asked == 'a') anonymous(MIB);
    else if (asked == 's') shared(memfd_create("more", 0), MIB);
    else continue;
    puts("GREW");
    fflush(stdout);
  }
  return 0;
}

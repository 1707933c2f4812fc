/* Maps and touches memory of each kind, a different number of MiB each; prints READY, then sleeps.
   mappings FILE DELETED_FILE SHM_NAME */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <unistd.h>

#define MIB (1L << 20)
static char zeros[20 * MIB];

static char *map(long bytes, int flags, int fd) {
  char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) _exit(1);
  return at;
}

static void of_file(int fd, long bytes, int flags) {
  if (fd < 0 || ftruncate(fd, bytes)) _exit(2);
  memset(map(bytes, flags, fd), 1, bytes);
}

int main(int count, char **words) {
  if (count < 4) return 3;
  memset(zeros, 1, sizeof zeros);
  of_file(open(words[1], O_RDWR | O_CREAT, 0600), 5 * MIB, MAP_SHARED);
  of_file(open(words[2], O_RDWR | O_CREAT, 0600), 6 * MIB, MAP_PRIVATE);
  unlink(words[2]);
  of_file(shm_open(words[3], O_RDWR | O_CREAT, 0600), 7 * MIB, MAP_SHARED);
  shm_unlink(words[3]);
  int sparse = memfd_create("sparse", 0);
  if (ftruncate(sparse, 64 * MIB)) return 4;
  memset(map(64 * MIB, MAP_SHARED, sparse) + 8 * MIB, 1, 2 * MIB);
  int segment = shmget(IPC_PRIVATE, 4 * MIB, IPC_CREAT | 0600);
  void *attached = shmat(segment, NULL, 0);
  shmctl(segment, IPC_RMID, NULL);
  memset(attached, 1, 4 * MIB);
  memset(map(1 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1), 1, 1 * MIB);
  char *named = map(9 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  memset(named, 1, 9 * MIB);
  prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, 9 * MIB, "pool");
  char *huge = map(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  huge = (char *)(((long)huge + 2 * MIB - 1) & -(2 * MIB));
  madvise(huge, 4 * MIB, MADV_HUGEPAGE);
  memset(huge, 1, 4 * MIB);
  puts("READY");
  fflush(stdout);
  pause();
}

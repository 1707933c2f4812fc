/* A JNI library whose functions end the JVM, each in its own way. Built without optimization, so that each call is a frame. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define JNI(name) __attribute__((visibility("default"))) void Java_com_acme_shop_Crashes_00024Native_##name

static void parse_header(int *header) { *header = 42; }

JNI(nullWrite)(void *env, void *class, void *bytes) { parse_header(NULL); }

static long walk_tree(long depth) {
  volatile char node[2048];
  memset((char *)node, (int)depth, sizeof node);
  return depth ? walk_tree(depth - 1) + node[depth % sizeof node] : 0;
}

/* The kernel cannot put the signal's frame on the full stack: it kills the JVM, which writes no report. */
JNI(recurse)(void *env, void *class, long depth) { walk_tree(depth); }

JNI(abort)(void *env, void *class) { abort(); }

static void release(void *block) { free(block); }

JNI(doubleFree)(void *env, void *class) {
  char *block = malloc(4096);
  release(block);
  release(block);
}

JNI(divide)(void *env, void *class, int by) {
  volatile int count = 100;
  count /= by;
}

JNI(trap)(void *env, void *class) { __builtin_trap(); }

/* Leaves no mapping to the process: each second page of a region has other rights. */
JNI(splitMaps)(void *env, void *class) {
  const long pages = 1L << 18, page = 4096;
  char *region = mmap(NULL, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (long number = 0; region != MAP_FAILED && number < pages; number += 2)
    if (mprotect(region + number * page, page, PROT_NONE)) return;
}

/* JNIEnv's table: GetDirectBufferAddress is its function 230. */
JNI(read)(void ***env, void *class, void *buffer) {
  char *(*address)(void *, void *) = (char *(*)(void *, void *))(*env)[230];
  volatile char last = address(env, buffer)[1 << 19];
  (void)last;
}

JNI(write)(void ***env, void *class, void *buffer) {
  char *(*address)(void *, void *) = (char *(*)(void *, void *))(*env)[230];
  memset(address(env, buffer), 1, 64L << 20);
}

static void *poll_device(void *device) {
  parse_header(device);
  return NULL;
}

JNI(inThread)(void *env, void *class) {
  pthread_t thread;
  pthread_create(&thread, NULL, poll_device, NULL);
  pthread_join(thread, NULL);
}

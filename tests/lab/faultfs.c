/* Makes file operations of a process fail, hang or lie. Loaded with LD_PRELOAD; Linux only, as it asks /proc.
 *
 * FAULTFS_RULE names a file with one rule; without the file nothing happens. The rule is read before each operation,
 * and the count begins anew when its text changes:
 *
 *   <serial> <operation> <at> <lasting> <effect> <errno> <gate> <pattern>
 *
 * operation  open write fsync rename truncate unlink mkdir
 * at         which of the operations on matching paths, from 0; with lasting 1, all from there on
 * effect     fail (nothing happens), lie (it happens and fails nevertheless), pass (it happens)
 * gate       none, before or after its effect: hangs there once
 * pattern    for fnmatch, on the whole path; a rename is matched by its target
 *
 * FAULTFS_GATE names a directory with two FIFOs: a byte is written to `reached` when an operation hangs, and it goes on
 * when a byte is read from `open`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum effect { PASS, FAIL, LIE };
struct verdict {
    enum effect effect;
    int error;
    int before; /* hangs before the effect */
    int after;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char last_rule[PATH_MAX];
static long count;
static const struct verdict PASSES = {PASS, 0, 0, 0};

static int read_file(const char *path, char *text, size_t size) {
    long handle = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (handle < 0) return 0;
    long got = syscall(SYS_read, (int)handle, text, size - 1);
    syscall(SYS_close, (int)handle);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

static struct verdict judge(const char *operation, const char *path) {
    char rule[PATH_MAX], wanted[16], effect[8], gate[8], pattern[PATH_MAX];
    long serial, at;
    int lasting, error;
    const char *place = getenv("FAULTFS_RULE");
    if (!place || !path || !read_file(place, rule, sizeof rule)) return PASSES;
    if (sscanf(rule, "%ld %15s %ld %d %7s %d %7s %4000[^\n]", &serial, wanted, &at, &lasting, effect, &error, gate,
               pattern) != 8)
        return PASSES;
    if (strcmp(wanted, operation) || fnmatch(pattern, path, 0)) return PASSES;
    pthread_mutex_lock(&mutex);
    if (strcmp(rule, last_rule)) {
        strcpy(last_rule, rule);
        count = 0;
    }
    long number = count++;
    pthread_mutex_unlock(&mutex);
    if (number < at || (number > at && !lasting)) return PASSES;
    struct verdict verdict = {!strcmp(effect, "fail") ? FAIL : !strcmp(effect, "lie") ? LIE : PASS, error, 0, 0};
    verdict.before = number == at && !strcmp(gate, "before");
    verdict.after = number == at && !strcmp(gate, "after");
    return verdict;
}

static struct verdict judge_handle(const char *operation, int handle) {
    char link[64], path[PATH_MAX];
    if (!getenv("FAULTFS_RULE")) return PASSES;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return PASSES;
    path[length] = 0;
    return judge(operation, path);
}

static void hang(int hangs) {
    const char *gate = getenv("FAULTFS_GATE");
    char path[PATH_MAX], byte = '!';
    if (!hangs || !gate) return;
    snprintf(path, sizeof path, "%s/open", gate);
    int opened = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    snprintf(path, sizeof path, "%s/reached", gate);
    int reached = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (opened >= 0 && reached >= 0) {
        syscall(SYS_write, reached, &byte, 1);
        while (syscall(SYS_read, opened, &byte, 1) < 0 && errno == EINTR) continue;
    }
    if (opened >= 0) syscall(SYS_close, opened);
    if (reached >= 0) syscall(SYS_close, reached);
}

/* Runs CALL, an expression that does the operation, as the verdict says. */
#define UNDER(VERDICT, CALL)                     \
    do {                                         \
        struct verdict verdict_ = (VERDICT);     \
        hang(verdict_.before);                   \
        if (verdict_.effect == FAIL) {           \
            hang(verdict_.after);                \
            errno = verdict_.error;              \
            return -1;                           \
        }                                        \
        long done_ = (long)(CALL);               \
        int error_ = errno;                      \
        hang(verdict_.after);                    \
        errno = error_;                          \
        if (verdict_.effect == LIE) {            \
            errno = verdict_.error;              \
            return -1;                           \
        }                                        \
        return done_;                            \
    } while (0)

#define REAL(NAME, TYPE) ((TYPE)dlsym(RTLD_NEXT, NAME))

static int open_under(const char *name, const char *path, int flags, mode_t mode) {
    UNDER(judge("open", path), REAL(name, int (*)(const char *, int, ...))(path, flags, mode));
}

#define OPEN(NAME)                                   \
    int NAME(const char *path, int flags, ...) {     \
        mode_t mode = 0;                             \
        if (flags & (O_CREAT | O_TMPFILE)) {         \
            va_list rest;                            \
            va_start(rest, flags);                   \
            mode = va_arg(rest, mode_t);             \
            va_end(rest);                            \
        }                                            \
        return open_under(#NAME, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int handle, const void *data, size_t size) {
    UNDER(judge_handle("write", handle), syscall(SYS_write, handle, data, size));
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t at) {
    UNDER(judge_handle("write", handle), syscall(SYS_pwrite64, handle, data, size, at));
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
    UNDER(judge_handle("write", handle), syscall(SYS_pwrite64, handle, data, size, at));
}

int fsync(int handle) { UNDER(judge_handle("fsync", handle), syscall(SYS_fsync, handle)); }

int fdatasync(int handle) { UNDER(judge_handle("fsync", handle), syscall(SYS_fdatasync, handle)); }

int ftruncate(int handle, off_t size) { UNDER(judge_handle("truncate", handle), syscall(SYS_ftruncate, handle, size)); }

int ftruncate64(int handle, off64_t size) {
    UNDER(judge_handle("truncate", handle), syscall(SYS_ftruncate, handle, size));
}

int truncate(const char *path, off_t size) { UNDER(judge("truncate", path), syscall(SYS_truncate, path, size)); }

int truncate64(const char *path, off64_t size) { UNDER(judge("truncate", path), syscall(SYS_truncate, path, size)); }

int rename(const char *from, const char *to) {
    UNDER(judge("rename", to), syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int unlink(const char *path) { UNDER(judge("unlink", path), syscall(SYS_unlinkat, AT_FDCWD, path, 0)); }

int mkdir(const char *path, mode_t mode) { UNDER(judge("mkdir", path), syscall(SYS_mkdirat, AT_FDCWD, path, mode)); }

/* The one program of the box. As process 1 it runs a shell for each line that it is sent and tells what happened;
 * under any other name it stands in for a program: it logs how it was started, and ends.
 *
 * A few that start others (env, xargs, sh, …) are there in truth: the stand-in logs and then becomes them. In the box
 * they find stand-ins alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BOX "/.box/"
#define HOME "/w"
#define TRACE_FD 63
#define MOST_TEXT (1 << 18)

extern char **environ;

/* Texts that would run something if they were read once more. */
static const char OUTPUT[] = "o1 'q[$(evil out)]' -v z[$(evil)] `evil`\n";
static const char *const FILES[] = {"f", "g", "h i", "z[$(evil file)]", "-exec", "sub/f", "sub/x y", "a dir/f"};
static const char *const FOLDERS[] = {HOME "/sub", HOME "/a dir", HOME "/sub/deep"};
static const char *const WATCHED[] = {HOME, HOME "/sub", HOME "/a dir", "/tmp"};

static void must(int is_well, const char *what) {
    if (!is_well) {
        perror(what);
        _exit(99);
    }
}

/* ---- the stand-in */

static uint64_t mixed(const char *text, size_t length) {
    uint64_t hash = 1469598103934665603u;
    for (size_t at = 0; at < length; at++) hash = (hash ^ (unsigned char)text[at]) * 1099511628211u;
    return hash;
}

/* What every shell changes by itself, and what no program looks for: names in lower case, proxies apart. */
static int is_own(const char *entry) {
    static const char *const changing[] = {"_=", "SHLVL=", "PWD=", "OLDPWD=", "SHELLOPTS=", "BASHOPTS=", "BASH_FUNC_"};
    for (size_t at = 0; at < sizeof changing / sizeof *changing; at++)
        if (!strncmp(entry, changing[at], strlen(changing[at]))) return 1;
    size_t name = strcspn(entry, "=");
    for (size_t at = 0; at < name; at++)
        if (!(entry[at] == '_' || (entry[at] >= 'a' && entry[at] <= 'z') || (at && entry[at] >= '0' && entry[at] <= '9')))
            return 0;
    return !(name >= 6 && !strncmp(entry + name - 6, "_proxy", 6));
}

static int stand_in(int argc, char **argv) {
    static char record[MOST_TEXT];
    /* `exec -a` gives a program another name; this is the file that was started. */
    const char *file = (const char *)getauxval(AT_EXECFN);
    int is_unknown = file && !strcmp(file, BOX "handle");
    uint64_t surroundings = 0;
    for (char **each = environ; *each; each++)
        if (!is_own(*each)) surroundings ^= mixed(*each, strlen(*each));

    size_t used = 4;
    char folder[4096];
    if (!getcwd(folder, sizeof folder)) strcpy(folder, "?");
    used += (size_t)snprintf(record + used, sizeof record - used, "%016llx", (unsigned long long)surroundings) + 1;
    used += (size_t)snprintf(record + used, sizeof record - used, "%s", folder) + 1;
    used += (size_t)snprintf(record + used, sizeof record - used, "%s", is_unknown || !file ? "" : file) + 1;
    size_t words = used;
    for (int at = is_unknown; at < argc; at++) {
        size_t length = strlen(argv[at]) + 1;
        /* A record that says less than was started would be a lie: this one is seen as broken. */
        if (used + length > sizeof record) return 1;
        memcpy(record + used, argv[at], length);
        used += length;
    }
    uint32_t size = (uint32_t)(used - 4);
    memcpy(record, &size, 4);

    struct stat before = {0};
    int log = open(BOX "log", O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0 || fstat(log, &before) || write(log, record, used) != (ssize_t)used) return 1;
    close(log);

    char real[300];
    if (!is_unknown && file && strrchr(file, '/') && snprintf(real, sizeof real, BOX "real/%s", strrchr(file, '/') + 1) < (int)sizeof real)
        execv(real, argv);
    /* The same line goes the same way each time, and a loop does not go on for ever. */
    uint64_t chance = (mixed(record + words, used - words) + (uint64_t)before.st_size) * 0x9e3779b97f4a7c15u;
    struct stat out;
    /* `"$(cat <<'E' …)"` is read as the text that it is: the word must be that text. */
    if (argc == 1 && !is_unknown && file && !strcmp(file + strlen(file) - 4, "/cat") && !fstat(1, &out) && !S_ISREG(out.st_mode)) {
        signal(SIGPIPE, SIG_IGN);
        ssize_t got = read(0, record, sizeof record);
        return got < 0 || write(1, record, (size_t)got) != got;
    }
    if (chance & (1 << 20) && !fstat(1, &out) && !S_ISREG(out.st_mode)) {
        signal(SIGPIPE, SIG_IGN);
        if (write(1, OUTPUT, sizeof OUTPUT - 1) < 0) return 1;
    }
    return chance >> 63;
}

/* ---- process 1 */

static int watcher = -1;
static char watched[64];
static char events[MOST_TEXT];
static size_t events_used;

static int removed(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind;
    if (place->level) remove(path);
    return 0;
}

static void lay_out(void) {
    if (watcher >= 0) close(watcher);
    nftw(HOME, removed, 16, FTW_DEPTH | FTW_PHYS);
    nftw("/tmp", removed, 16, FTW_DEPTH | FTW_PHYS);
    for (size_t at = 0; at < sizeof FOLDERS / sizeof *FOLDERS; at++) must(!mkdir(FOLDERS[at], 0755), "mkdir");
    for (size_t at = 0; at < sizeof FILES / sizeof *FILES; at++) {
        char path[100];
        snprintf(path, sizeof path, HOME "/%s", FILES[at]);
        int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        must(file >= 0 && write(file, OUTPUT, sizeof OUTPUT - 1) > 0 && !close(file), path);
    }
    must((watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) >= 0, "inotify");
    for (size_t at = 0; at < sizeof WATCHED / sizeof *WATCHED; at++) {
        int number = inotify_add_watch(watcher, WATCHED[at], IN_OPEN | IN_CREATE | IN_CLOSE_WRITE | IN_MODIFY);
        must(number > 0 && number < (int)sizeof watched, "watch");
        watched[number] = (char)at;
    }
}

/* Which files were opened (R) and which were opened to be written (W). */
static void take_events(void) {
    char buffer[1 << 14] __attribute__((aligned(8)));
    ssize_t got;
    events_used = 0;
    while ((got = read(watcher, buffer, sizeof buffer)) > 0) {
        for (char *at = buffer; at < buffer + got;) {
            struct inotify_event *event = (struct inotify_event *)at;
            at += sizeof *event + event->len;
            if (event->mask & (IN_ISDIR | IN_IGNORED | IN_Q_OVERFLOW) || !event->len) continue;
            if (events_used + 600 > sizeof events) continue;
            events_used += (size_t)snprintf(events + events_used, 600, "%c%s/%s",
                event->mask & IN_OPEN ? 'R' : 'W', WATCHED[(int)watched[event->wd]], event->name) + 1;
        }
    }
}

static void limit(int what, rlim_t most) {
    struct rlimit bound = {most, most};
    setrlimit(what, &bound);
}

static void become_shell(const char *shell, int reads_only, char *line) {
    char path[100];
    snprintf(path, sizeof path, BOX "real/%s", shell);
    int is_bash = !strcmp(shell, "bash");
    setsid();
    limit(RLIMIT_CPU, 1);
    limit(RLIMIT_NPROC, 60);
    limit(RLIMIT_FSIZE, MOST_TEXT);
    limit(RLIMIT_AS, 1 << 28);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, 128);
    int nothing = open("/dev/null", O_RDWR);
    int errors = open(BOX "err", O_WRONLY | O_APPEND);
    int trace = open(BOX "trace", O_WRONLY | O_APPEND);
    dup2(nothing, 0), dup2(nothing, 1), dup2(errors, 2), dup2(trace, TRACE_FD);
    for (int each = 3; each < TRACE_FD; each++) close(each);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(HOME)) _exit(98);
    /* Bash takes xtrace from SHELLOPTS and hands it on to others that are started in it; the plain shell does not. */
    char *argv[] = {(char *)shell, reads_only ? "-n" : is_bash ? "-c" : "-xc", reads_only ? "-c" : line,
                    reads_only ? line : NULL, NULL};
    execv(path, argv);
    _exit(98);
}

/* The state of the shell; -1 where it or something that it left behind had to be ended. */
static int32_t ran(const char *shell, int reads_only, char *line, const struct timespec *most) {
    struct timespec now, until;
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += most->tv_sec, until.tv_nsec += most->tv_nsec;
    pid_t first = fork();
    must(first >= 0, "fork");
    if (!first) become_shell(shell, reads_only, line);
    int32_t state = -1;
    int status;
    for (;;) {
        pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended == first) state = status;
        if (ended < 0) return state;
        if (ended > 0) continue;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left = (until.tv_sec - now.tv_sec) * 1000000000ll + until.tv_nsec - now.tv_nsec;
        if (left <= 0) break;
        struct timespec wait = {left / 1000000000ll, left % 1000000000ll};
        sigtimedwait(&children, NULL, &wait);
    }
    do kill(-1, SIGKILL);
    while (waitpid(-1, &status, 0) > 0);
    return -1;
}

static void send(const void *from, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t wrote = write(1, (const char *)from + done, length - done);
        if (wrote <= 0) _exit(0);
        done += (size_t)wrote;
    }
}

static void send_text(const char *text, uint32_t length) {
    send(&length, 4);
    send(text, length);
}

static void send_file(const char *path) {
    static char text[8 * MOST_TEXT];
    int file = open(path, O_RDWR | O_CLOEXEC);
    must(file >= 0, path);
    size_t used = 0;
    for (ssize_t got; used < sizeof text && (got = read(file, text + used, sizeof text - used)) > 0;) used += (size_t)got;
    must(!ftruncate(file, 0), "ftruncate");
    close(file);
    send_text(text, (uint32_t)used);
}

static int receive(void *to, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t got = read(0, (char *)to + done, length - done);
        if (got <= 0) return 0;
        done += (size_t)got;
    }
    return 1;
}

/* Sent: a flag (reads only), the most milliseconds, the length, the line. Told: state, log, trace, errors, files. */
static int serve(const char *shell) {
    static char line[1 << 17];
    static const char *const kept[] = {BOX "log", BOX "trace", BOX "err"};
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    umask(0022);
    for (size_t at = 0; at < 3; at++) close(open(kept[at], O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    lay_out();
    uint32_t head[3];
    while (receive(head, sizeof head) && head[2] < sizeof line && receive(line, head[2])) {
        line[head[2]] = 0;
        struct timespec most = {head[1] / 1000, head[1] % 1000 * 1000000l};
        int32_t state = ran(shell, (int)head[0], line, &most);
        send(&state, 4);
        for (size_t at = 0; at < 3; at++) send_file(kept[at]);
        take_events();
        send_text(events, (uint32_t)events_used);
        if (events_used) lay_out();
    }
    return 0;
}

int main(int argc, char **argv) {
    return getpid() == 1 ? serve(argc > 1 ? argv[1] : "bash") : stand_in(argc, argv);
}

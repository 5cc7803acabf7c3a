/* Probes at the kernel's functions (Documentation/trace/kprobetrace.rst of the kernel), and their trace. A program
 * includes boot.h first.
 *
 * Offsets within `struct sk_buff` are those of Linux 6.1 on amd64: `sk` at 24, `cb` at 40, and in it the packet's length
 * and CoDel's stamp 8 bytes behind. */
static void write_to(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_APPEND);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        say("cannot write %s to %s: %s", text, path, strerror(errno));
    close(file);
}

static const char TRACE[] = "/sys/kernel/tracing/trace";
static const char EVENTS[] = "/sys/kernel/tracing/kprobe_events";
static const char ENABLE[] = "/sys/kernel/tracing/events/kprobes/enable";

/* Empties one of the kernel's files of tracing. */
static void empty(const char *path)
{
    close(open(path, O_WRONLY | O_TRUNC));
}

/* How far behind the beginning of `function` its call of the clock returns, as a trace of the clock shows. */
static int clock_offset(const char *function)
{
    char line[512], from[128];
    int offset = 0;
    FILE *trace = fopen(TRACE, "r");
    snprintf(from, sizeof from, "(%s+0x", function);
    while (trace && !offset && fgets(line, sizeof line, trace)) {
        const char *at = strstr(line, from);
        if (at && strstr(at, "<- ktime_get"))
            offset = (int)strtol(at + strlen(from), NULL, 16);
    }
    if (trace)
        fclose(trace);
    if (!offset)
        say("failed: the clock of %s is not seen", function);
    return offset;
}

/* Writes the trace as text to `disk`: how many bytes. */
static long keep_trace(int disk)
{
    static char buffer[1 << 16];
    int trace = open(TRACE, O_RDONLY);
    ssize_t size;
    long all = 0;
    if (trace < 0)
        fail("the trace");
    while ((size = read(trace, buffer, sizeof buffer)) > 0 && write(disk, buffer, (size_t)size) == size)
        all += size;
    close(trace);
    return all;
}

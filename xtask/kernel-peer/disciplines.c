/*
 * The program that a booted kernel starts as its first and only process: disciplines of the kernel, one after the other,
 * on a cable between two devices, packets that come to them, and what becomes of each.
 *
 *   this program: raw frames -- talkpath0 (the discipline) -- veth -- talkpath1: this program
 *
 * What it does is in the file /cases, a line each:
 *
 *   case NAME                                a discipline begins
 *   tc ARGUMENTS                             a call of tc(8), which with its libraries is in the archive
 *   probe ENQUEUE DEQUEUE CLOCK              traces these functions; CLOCK is the one that reads the clock; `-` is none
 *   load SECONDS KBPS                        packets of three classes in bursts; the trace goes to the disk /dev/vda
 *   share COUNT                              this many numbered packets: how many are lost, doubled, damaged, reordered
 *
 * A packet's class is the last digit of its length, and selects a class of the discipline with the handle 2 (as
 * SO_PRIORITY does, socket(7)). Frames have an ethertype for experiments (IEEE 802, 88-B5), so that no protocol of the
 * kernel sends or takes any.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "boot.h"
#include "tracing.h"

enum { HANDLE = 2 << 16, CLASSES = 3, LEAST = 60, MOST = 1514, SHARE_SIZE = 100, ETHERTYPE = 0x88b5 };
enum { WORDS = 64 };

/* Splits at spaces; the last of `words` is NULL. */
static void split(char *line, char **words)
{
    int count = 0;
    for (char *word = strtok(line, " \n"); word && count < WORDS - 1; word = strtok(NULL, " \n"))
        words[count++] = word;
    words[count] = NULL;
}

static void call(const char *program, char **words)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execv(program, words);
        _exit(127);
    }
    waitpid(child, &status, 0);
    if (status != 0) {
        say("failed: %s %s %s %s: status %d", program, words[1], words[2], words[3], status);
        power_off();
    }
}

static void call_line(const char *program, const char *line)
{
    char copy[512], *words[WORDS];
    snprintf(copy, sizeof copy, "%s", line);
    split(copy, words);
    call(program, words);
}

/* A socket for raw frames of a device. */
static int frame_socket(const char *device, int priority)
{
    int one = socket(AF_PACKET, SOCK_RAW, htons(ETHERTYPE)), room = 64 << 20;
    struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE) };
    to.sll_ifindex = (int)if_nametoindex(device);
    if (one < 0 || bind(one, (struct sockaddr *)&to, sizeof to) != 0)
        fail("a socket for frames");
    setsockopt(one, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
    setsockopt(one, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    setsockopt(one, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    return one;
}

/* A frame whose payload is its number, over and over: a changed bit leaves most copies of it whole. */
static void fill(unsigned char *frame, size_t size, uint32_t number)
{
    static const unsigned char HEAD[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, ETHERTYPE >> 8, ETHERTYPE & 255 };
    memcpy(frame, HEAD, sizeof HEAD);
    for (size_t at = sizeof HEAD; at < size; at++)
        frame[at] = (unsigned char)(number >> 8 * (at - sizeof HEAD) % 32);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    struct timespec at = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* A number below `bound` (Steele and Vigna's multiplier of a linear generator, the upper half). */
static uint32_t below(uint32_t bound)
{
    static uint64_t state = 52;
    state = state * 0xd1342543de82ef95 + 1;
    return (uint32_t)((state >> 32) * bound >> 32);
}

/* Bursts of packets of all classes, at `kbps` in the mean for three quarters of each second, and then a rest, so that the
 * discipline is full, and empty, again and again. */
static void load(long seconds, long kbps)
{
    static unsigned char frame[MOST];
    int classes[CLASSES];
    for (int class = 0; class < CLASSES; class++)
        classes[class] = frame_socket("talkpath0", HANDLE | (class + 1));
    uint64_t next = now_ns(), end = next + (uint64_t)seconds * 1000000000;
    uint32_t number = 0;
    while (next < end) {
        uint64_t bits = 0;
        for (uint32_t left = 1 + below(12); left > 0; left--) {
            int class = (int)below(CLASSES);
            size_t size = LEAST + 10 * below((MOST - LEAST) / 10) + (size_t)class;
            fill(frame, size, number++);
            send(classes[class], frame, size, 0);
            bits += 8 * size;
        }
        uint64_t gap = bits * 1000000 / (uint64_t)kbps;
        next += gap / 2 + below((uint32_t)gap);
        if (next % 1000000000 > 750000000)
            next += 250000000;
        sleep_until(next);
    }
    /* What waits may go. */
    sleep(1);
    for (int class = 0; class < CLASSES; class++)
        close(classes[class]);
    say("sent: %u", number);
}

static void probe(char **words)
{
    char text[512];
    const char *enqueue = words[1], *dequeue = words[2], *clock = words[3];
    int has_dequeue = strcmp(dequeue, "-") != 0;
    if (strcmp(clock, "-") != 0) {
        /* A probe of the clock itself, which everything reads, would hide what happens in an interrupt. It is there to find
         * where the function reads the clock. */
        static unsigned char frame[LEAST];
        int few = frame_socket("talkpath0", 0);
        write_to(EVENTS, "r:clock ktime_get\n");
        write_to(ENABLE, "1");
        fill(frame, sizeof frame, 0);
        for (int i = 0; i < 5; i++)
            send(few, frame, sizeof frame, 0);
        usleep(300000);
        close(few);
        write_to(ENABLE, "0");
        int offset = clock_offset(clock);
        empty(EVENTS);
        snprintf(text, sizeof text, "p:clock %s+%#x ns=%%ax:u64\n", clock, offset);
        write_to(EVENTS, text);
    }
    empty(TRACE);
    snprintf(text, sizeof text, "p:enter %s skb=%%di:x64 len=+40(%%di):u32\n", enqueue);
    write_to(EVENTS, text);
    snprintf(text, sizeof text, "r:entered %s ret=$retval:s32\n", enqueue);
    write_to(EVENTS, text);
    if (has_dequeue) {
        snprintf(text, sizeof text, "p:leave %s\n", dequeue);
        write_to(EVENTS, text);
        snprintf(text, sizeof text, "r:left %s skb=$retval:x64\n", dequeue);
        write_to(EVENTS, text);
        write_to(EVENTS, "p:wake qdisc_watchdog_schedule_range_ns at=%si:u64\n");
    }
    write_to(ENABLE, "1");
}

/* What the probes did not see, because one was at work already. */
static long missed(void)
{
    char line[256];
    long all = 0, misses = 0;
    FILE *profile = fopen("/sys/kernel/tracing/kprobe_profile", "r");
    while (profile && fgets(line, sizeof line, profile))
        if (sscanf(line, "%*s %*d %ld", &misses) == 1)
            all += misses;
    if (profile)
        fclose(profile);
    return all;
}

/* Figures of `count` packets: RFC 4737 says what is reordered. */
struct share {
    unsigned char *copies;
    uint32_t count, highest;
    long doubled, damaged, reordered, bits;
};

static uint32_t number_of(const unsigned char *frame)
{
    /* The number that two of the first three copies say. */
    uint32_t copies[3];
    for (int copy = 0; copy < 3; copy++)
        memcpy(&copies[copy], frame + 14 + 4 * copy, 4);
    return copies[0] == copies[1] ? copies[0] : copies[2];
}

static void take_frames(int from, struct share *share)
{
    unsigned char frame[SHARE_SIZE + 1], sent[SHARE_SIZE];
    while (recv(from, frame, sizeof frame, MSG_DONTWAIT) == SHARE_SIZE) {
        uint32_t number = number_of(frame);
        if (number >= share->count)
            continue;
        fill(sent, sizeof sent, number);
        int changed = 0;
        for (size_t at = 0; at < sizeof sent; at++)
            changed += __builtin_popcount(frame[at] ^ sent[at]);
        share->damaged += changed > 0;
        share->bits += changed;
        share->doubled += share->copies[number]++ > 0;
        share->reordered += number < share->highest;
        if (number > share->highest)
            share->highest = number;
    }
}

static void measure_share(uint32_t count)
{
    static unsigned char frame[SHARE_SIZE];
    struct share share = { .copies = calloc(count, 1), .count = count };
    int near = frame_socket("talkpath0", 0), far = frame_socket("talkpath1", 0);
    struct sockaddr_ll every = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
    every.sll_ifindex = (int)if_nametoindex("talkpath1");
    /* A frame with a changed bit may have another ethertype. */
    bind(far, (struct sockaddr *)&every, sizeof every);
    for (uint32_t number = 0; number < count; number++) {
        fill(frame, sizeof frame, number);
        send(near, frame, sizeof frame, 0);
        if (number % 16 == 0)
            take_frames(far, &share);
    }
    /* Longer than any delay of a case. */
    sleep(3);
    take_frames(far, &share);
    long missing = 0, runs = 0;
    for (uint32_t number = 0; number < count; number++) {
        missing += share.copies[number] == 0;
        runs += share.copies[number] == 0 && (number == 0 || share.copies[number - 1] > 0);
    }
    say("share: sent %u missing %ld runs %ld doubled %ld damaged %ld bits %ld reordered %ld", count, missing, runs,
        share.doubled, share.damaged, share.bits, share.reordered);
    close(near);
    close(far);
    free(share.copies);
}

int main(void)
{
    char line[512], *words[WORDS];
    mount("devtmpfs", "/dev", "devtmpfs", 0, "");
    mount("proc", "/proc", "proc", 0, "");
    mount("sysfs", "/sys", "sysfs", 0, "");
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, "");
    load_modules();
    if (access("/proc/sys/net/ipv6/conf/default/disable_ipv6", W_OK) == 0)
        write_to("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    call_line("/sbin/ip", "ip link add talkpath0 type veth peer name talkpath1");
    call_line("/sbin/ip", "ip link set talkpath0 up");
    call_line("/sbin/ip", "ip link set talkpath1 up");
    write_to("/sys/kernel/tracing/buffer_size_kb", "131072");
    int disk = open("/dev/vda", O_WRONLY);
    FILE *cases = fopen("/cases", "r");
    if (disk < 0 || !cases)
        fail("the disk or the cases");
    while (fgets(line, sizeof line, cases)) {
        if (strncmp(line, "case ", 5) == 0) {
            say("%.*s", (int)strcspn(line, "\n"), line);
            dprintf(disk, "%s", line);
            continue;
        }
        split(line, words);
        if (strcmp(words[0], "tc") == 0)
            call("/sbin/tc", words);
        else if (strcmp(words[0], "probe") == 0)
            probe(words);
        else if (strcmp(words[0], "load") == 0) {
            load(atol(words[1]), atol(words[2]));
            write_to(ENABLE, "0");
            say("missed: %ld", missed());
            say("trace: %ld bytes", keep_trace(disk));
            empty(TRACE);
            empty(EVENTS);
        } else if (strcmp(words[0], "share") == 0)
            measure_share((uint32_t)atol(words[1]));
    }
    fsync(disk);
    say("done");
    power_off();
}

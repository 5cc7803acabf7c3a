/*
 * The program that a booted kernel starts as its first and only process: a queue of the kernel's CoDel or FQ-CoDel
 * behind a shaper, flows of TCP and UDP that fill it, and a trace of all that the queue does.
 *
 *   this namespace: senders -- talkpath0 (tbf, codel or fq_codel) -- veth -- talkpath1: sinks, a namespace of its own
 *
 *   qdisc=codel|fq_codel   the queue, with the kernel's defaults
 *   mbps=N                 the rate of the shaper
 *   seconds=N              for how long the flows send
 *
 * The trace is that of probes at the queue's functions (Documentation/trace/kprobetrace.rst of the kernel): each
 * packet that enters, its size, socket and stamp, each call of dequeue, the clock's value in it, the packets that it
 * drops and the one that it gives. It goes as text to the disk /dev/vda.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "boot.h"
#include "tracing.h"

static const char NEAR[] = "10.33.0.1", FAR[] = "10.33.0.2";
enum { TCP_PORT = 5001, UDP_PORT = 5002, HANDLE = 2 << 16 };

/* A request to rtnetlink(7), grown attribute by attribute. */
struct request {
    struct nlmsghdr head;
    char body[1024];
};

static void *put(struct request *request, const void *data, size_t size)
{
    char *at = (char *)request + NLMSG_ALIGN(request->head.nlmsg_len);
    memcpy(at, data, size);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + (unsigned)size;
    return at;
}

static struct rtattr *attribute(struct request *request, int type, const void *data, size_t size)
{
    struct rtattr head = { .rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = (unsigned short)type };
    struct rtattr *at = put(request, &head, sizeof head);
    if (size)
        put(request, data, size);
    return at;
}

static void close_nest(struct request *request, struct rtattr *nest)
{
    nest->rta_len = (unsigned short)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len) - (char *)nest);
}

static void ask(struct request *request, const char *what)
{
    char answer[1024];
    int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    request->head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    send(route, request, request->head.nlmsg_len, 0);
    recv(route, answer, sizeof answer, 0);
    errno = -((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)answer))->error;
    if (errno)
        fail(what);
    close(route);
}

static void lay_cable(pid_t far)
{
    struct request request = { .head = { NLMSG_HDRLEN, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0, 0 } };
    struct ifinfomsg info = { 0 };
    put(&request, &info, sizeof info);
    attribute(&request, IFLA_IFNAME, "talkpath0", 10);
    struct rtattr *link = attribute(&request, IFLA_LINKINFO, NULL, 0);
    attribute(&request, IFLA_INFO_KIND, "veth", 4);
    struct rtattr *data = attribute(&request, IFLA_INFO_DATA, NULL, 0);
    struct rtattr *peer = attribute(&request, VETH_INFO_PEER, NULL, 0);
    put(&request, &info, sizeof info);
    attribute(&request, IFLA_IFNAME, "talkpath1", 10);
    attribute(&request, IFLA_NET_NS_PID, &far, sizeof far);
    close_nest(&request, peer);
    close_nest(&request, data);
    close_nest(&request, link);
    ask(&request, "the cable");
}

static void add_qdisc(unsigned parent, unsigned handle, const char *kind, long mbps)
{
    struct request request = { .head = { NLMSG_HDRLEN, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, 0, 0 } };
    struct tcmsg message = { .tcm_ifindex = (int)if_nametoindex("talkpath0"), .tcm_handle = handle, .tcm_parent = parent };
    put(&request, &message, sizeof message);
    attribute(&request, TCA_KIND, kind, strlen(kind) + 1);
    if (mbps) {
        struct tc_tbf_qopt shaper = { .rate = { .linklayer = 1, .rate = (unsigned)mbps * 125000 }, .limit = 1000000 };
        unsigned burst = 1600;
        struct rtattr *options = attribute(&request, TCA_OPTIONS, NULL, 0);
        attribute(&request, TCA_TBF_PARMS, &shaper, sizeof shaper);
        attribute(&request, TCA_TBF_BURST, &burst, sizeof burst);
        close_nest(&request, options);
    }
    ask(&request, kind);
}

static void set_address(const char *name, const char *ip)
{
    struct ifreq request = { 0 };
    struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(request.ifr_name, name);
    address->sin_family = AF_INET;
    inet_pton(AF_INET, ip, &address->sin_addr);
    if (ioctl(control, SIOCSIFADDR, &request) != 0)
        fail("an address");
    inet_pton(AF_INET, "255.255.255.0", &address->sin_addr);
    ioctl(control, SIOCSIFNETMASK, &request);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(control, SIOCSIFFLAGS, &request) != 0)
        fail("bringing a device up");
    close(control);
}

static struct sockaddr_in far_address(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    inet_pton(AF_INET, FAR, &address.sin_addr);
    return address;
}

/* Reads whatever comes to the far namespace. */
static void sink(void)
{
    static char buffer[1 << 16];
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(TCP_PORT) };
    int listener = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 16) != 0)
        fail("the sink");
    address.sin_port = htons(UDP_PORT);
    bind(datagrams, (struct sockaddr *)&address, sizeof address);
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (fork() == 0)
            while (read(connection, buffer, sizeof buffer) > 0)
                ;
    }
}

/* A bucket of its own for each flow: fq_codel takes the priority's lower half for it if the upper is its handle. */
static int flow_socket(int type, int port, int flow)
{
    int priority = HANDLE | flow, one = socket(AF_INET, type, 0);
    struct sockaddr_in to = far_address(port);
    setsockopt(one, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
    if (connect(one, (struct sockaddr *)&to, sizeof to) != 0)
        fail("a connection");
    return one;
}

static void send_stream(int flow)
{
    static char buffer[1 << 14];
    int one = flow_socket(SOCK_STREAM, TCP_PORT, flow);
    while (write(one, buffer, sizeof buffer) > 0)
        ;
}

/* Datagrams of `size` bytes at `bps`, in bursts of `burst`. */
static void send_datagrams(int flow, size_t size, long bps, long burst)
{
    static char buffer[1500];
    int one = flow_socket(SOCK_DGRAM, UDP_PORT, flow);
    long gap_ns = (long)(size * 8 * (size_t)burst) * 1000000000L / bps;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        for (long i = 0; i < burst; i++)
            send(one, buffer, size, 0);
        next.tv_nsec += gap_ns;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}

/* The name of the function that takes a packet out of the queue: newer kernels of 6.1 have one below `dequeue` and
 * `peek`, which a shaper calls. */
static const char *dequeue_of(const char *kind)
{
    static const char *const NAMES[2][2] = { { "__codel_qdisc_dequeue", "codel_qdisc_dequeue" },
                                             { "__fq_codel_dequeue", "fq_codel_dequeue" } };
    const char *const *names = NAMES[strcmp(kind, "codel") != 0];
    char line[512], symbol[256];
    FILE *symbols = fopen("/proc/kallsyms", "r");
    int is_below = 0;
    while (symbols && fgets(line, sizeof line, symbols))
        is_below |= sscanf(line, "%*s %*s %255s", symbol) == 1 && strcmp(symbol, names[0]) == 0;
    if (symbols)
        fclose(symbols);
    return names[!is_below];
}

/* A probe is not entered again while it works, so a probe of the clock itself, which everything reads, would hide what
 * the queue does in an interrupt. It is there for a second only, to find where the queue's functions read the clock. */
static void set_probes(const char *kind)
{
    char text[512] = "";
    const char *enqueue = strcmp(kind, "codel") == 0 ? "codel_qdisc_enqueue" : "fq_codel_enqueue";
    const char *dequeue = dequeue_of(kind);
    write_to("/sys/kernel/tracing/buffer_size_kb", "131072");
    write_to(EVENTS, "r:clock ktime_get\n");
    write_to(ENABLE, "1");
    int few = flow_socket(SOCK_DGRAM, UDP_PORT, 9);
    for (int i = 0; i < 5; i++)
        send(few, text, 100, 0);
    sleep(1);
    close(few);
    write_to(ENABLE, "0");
    int entering = clock_offset(enqueue), leaving = clock_offset(dequeue);
    write_to(EVENTS, "-:clock\n");
    empty(TRACE);
    say("probed: %s+%#x, %s+%#x", enqueue, entering, dequeue, leaving);
    snprintf(text, sizeof text, "p:enter %s skb=%%di:x64 len=+40(%%di):u32 sk=+24(%%di):x64\n", enqueue);
    write_to(EVENTS, text);
    snprintf(text, sizeof text, "p:entering %s+%#x ns=%%ax:u64\n", enqueue, entering);
    write_to(EVENTS, text);
    snprintf(text, sizeof text, "r:entered %s ret=$retval:s32\n", enqueue);
    write_to(EVENTS, text);
    snprintf(text, sizeof text, "p:leave %s\n", dequeue);
    write_to(EVENTS, text);
    snprintf(text, sizeof text, "p:leaving %s+%#x ns=%%ax:u64\n", dequeue, leaving);
    write_to(EVENTS, text);
    snprintf(text, sizeof text, "r:left %s skb=$retval:x64 et=+48($retval):u32\n", dequeue);
    write_to(EVENTS, text);
    write_to(EVENTS, "p:drop kfree_skb_reason skb=%di:x64 et=+48(%di):u32\n");
    write_to(ENABLE, "1");
}

int main(void)
{
    const char *kind = getenv("qdisc") ? getenv("qdisc") : "codel";
    long mbps = getenv("mbps") ? atol(getenv("mbps")) : 10, seconds = getenv("seconds") ? atol(getenv("seconds")) : 10;
    pid_t children[8];
    int count = 0, ready[2];
    mount("devtmpfs", "/dev", "devtmpfs", 0, "");
    mount("proc", "/proc", "proc", 0, "");
    mount("sysfs", "/sys", "sysfs", 0, "");
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, "");
    load_modules();
    if (pipe(ready) != 0)
        fail("a pipe");
    pid_t far = fork();
    if (far == 0) {
        if (unshare(CLONE_NEWNET) != 0 || write(ready[1], "", 1) != 1)
            fail("the far namespace");
        while (if_nametoindex("talkpath1") == 0)
            usleep(10000);
        set_address("talkpath1", FAR);
        sink();
    }
    char is_ready;
    if (read(ready[0], &is_ready, 1) != 1)
        fail("the far namespace");
    lay_cable(far);
    set_address("talkpath0", NEAR);
    add_qdisc(TC_H_ROOT, 1 << 16, "tbf", mbps);
    add_qdisc(1 << 16 | 1, HANDLE, kind, 0);
    sleep(1);
    set_probes(kind);
    for (int flow = 1; flow <= 5; flow++) {
        pid_t child = fork();
        if (child == 0) {
            if (flow <= 3)
                send_stream(flow);
            else if (flow == 4)
                send_datagrams(flow, 160, mbps * 64000, 1);
            else
                send_datagrams(flow, 1000, mbps * 300000, 10);
            _exit(0);
        }
        children[count++] = child;
    }
    sleep((unsigned)seconds);
    write_to("/sys/kernel/tracing/tracing_on", "0");
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    int disk = open("/dev/vda", O_WRONLY);
    if (disk < 0)
        fail("the disk");
    say("trace: %ld bytes", keep_trace(disk));
    fsync(disk);
    say("done");
    power_off();
}

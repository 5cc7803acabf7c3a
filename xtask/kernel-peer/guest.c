/*
 * The program that a booted kernel starts as its first and only process: the far end of a DCCP connection, spoken by
 * the kernel's own DCCP. It loads the modules that lie in /modules in their order, sets an address, opens one
 * connection in the role that the kernel's command line gives it, says on the console what happened, and powers off.
 *
 *   role=server|client   waits for a connection, or opens one to the host
 *   ccid=2|3             asked for in both directions (RFC 4340 section 10)
 *   messages=N           a client sends so many of `size` bytes, one in `gap_us`; a server counts what comes
 *
 * Numbers of the kernel's interface are from its uapi headers, linux/dccp.h and linux/in.h of 6.1.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>

#include "boot.h"

enum { SOCK_DCCP_ = 6, IPPROTO_DCCP_ = 33, SOL_DCCP_ = 269 };
enum { OPT_MPS = 5, OPT_CCID = 13, OPT_TX_CCID = 14, OPT_RX_CCID = 15 };

static const char GUEST[] = "10.33.0.2", HOST[] = "10.33.0.1";
static const int PORT = 5001;

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void set_address(void)
{
    struct ifreq request = { 0 };
    struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(request.ifr_name, "eth0");
    address->sin_family = AF_INET;
    inet_pton(AF_INET, GUEST, &address->sin_addr);
    if (ioctl(control, SIOCSIFADDR, &request) != 0)
        fail("the address of eth0");
    inet_pton(AF_INET, "255.255.255.0", &address->sin_addr);
    ioctl(control, SIOCSIFNETMASK, &request);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(control, SIOCSIFFLAGS, &request) != 0)
        fail("bringing eth0 up");
    close(control);
}

static int dccp_socket(void)
{
    unsigned char ccid = (unsigned char)number("ccid", 2);
    int connection = socket(AF_INET, SOCK_DCCP_, IPPROTO_DCCP_);
    if (connection < 0)
        fail("a DCCP socket");
    if (setsockopt(connection, SOL_DCCP_, OPT_CCID, &ccid, sizeof ccid) != 0)
        fail("the CCID");
    return connection;
}

static void tell_connection(int connection)
{
    int mps = 0, tx = -1, rx = -1;
    socklen_t size = sizeof mps;
    getsockopt(connection, SOL_DCCP_, OPT_MPS, &mps, &size);
    getsockopt(connection, SOL_DCCP_, OPT_TX_CCID, &tx, &size);
    getsockopt(connection, SOL_DCCP_, OPT_RX_CCID, &rx, &size);
    say("connected: tx_ccid %d rx_ccid %d mps %d", tx, rx, mps);
}

/* Reads until the other end closed; a message that came whole and in the pattern of its number counts as good. */
static void count_messages(int connection)
{
    unsigned char message[2048];
    long got = 0, good = 0, last = -1;
    ssize_t size;
    while ((size = recv(connection, message, sizeof message, 0)) > 0) {
        long number = size >= 2 ? message[0] << 8 | message[1] : -1;
        int whole = size > 2;
        for (ssize_t at = 2; at < size; at++)
            whole &= message[at] == (unsigned char)(number + at);
        got++;
        good += whole && number > last;
        last = number;
    }
    say("received %ld messages, %ld good, last %ld, then %s", got, good, last, size == 0 ? "end" : strerror(errno));
}

static void send_messages(int connection)
{
    unsigned char message[1400];
    long count = number("messages", 200), size = number("size", 160), sent = 0;
    for (long i = 0; i < count; i++) {
        message[0] = (unsigned char)(i >> 8);
        message[1] = (unsigned char)i;
        for (long at = 2; at < size; at++)
            message[at] = (unsigned char)(i + at);
        while (send(connection, message, (size_t)size, 0) < 0) {
            if (errno != EAGAIN) {
                say("sent %ld messages, then %s", sent, strerror(errno));
                return;
            }
            usleep(2000);
        }
        sent++;
        usleep((useconds_t)number("gap_us", 20000));
    }
    say("sent %ld messages", sent);
}

int main(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    const char *role = getenv("role");
    struct timeval limit = { .tv_sec = 120 };

    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    if (console >= 0)
        dup2(console, 0), dup2(console, 1), dup2(console, 2);
    load_modules();
    int connection = dccp_socket();
    if (role && strcmp(role, "client") == 0) {
        set_address();
        inet_pton(AF_INET, HOST, &address.sin_addr);
        if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
            fail("connecting");
        tell_connection(connection);
        send_messages(connection);
        close(connection);
        sleep(2); /* the close has its own handshake, with the kernel's timers behind it */
    } else {
        address.sin_addr.s_addr = htonl(INADDR_ANY);
        if (bind(connection, (struct sockaddr *)&address, sizeof address) != 0 || listen(connection, 1) != 0)
            fail("listening");
        set_address(); /* only now can anybody find us: what answers at this address listens */
        say("listening");
        int accepted = accept(connection, NULL, NULL);
        if (accepted < 0)
            fail("accepting");
        setsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        tell_connection(accepted);
        count_messages(accepted);
        close(accepted);
        sleep(1);
    }
    say("done");
    power_off();
    return 0;
}

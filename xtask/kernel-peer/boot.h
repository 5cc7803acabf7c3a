/* What each program does that a booted kernel starts as its first and only process: it speaks on the console, loads its
 * modules, and powers off. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("guest: ");
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
}

static void power_off(void)
{
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

static void fail(const char *what)
{
    say("failed: %s: %s", what, strerror(errno));
    power_off();
}

/* Loads the modules that lie in /modules, in the order of their names. */
static void load_modules(void)
{
    struct dirent **names;
    int count = scandir("/modules", &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[512];
        if (names[i]->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/modules/%s", names[i]->d_name);
        int file = open(path, O_RDONLY);
        if (file < 0 || syscall(SYS_finit_module, file, "", 0) != 0)
            say("module %s: %s", names[i]->d_name, strerror(errno));
        close(file);
    }
}

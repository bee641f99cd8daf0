/* Runs commands in the guest: each connection sends one line for the shell and then its standard input, and receives the output and, behind
   it, a line `#exit N`. Several may run at a time. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(int peer)
{
    char line[65536];
    size_t length = 0;
    while (length + 1 < sizeof line && read(peer, line + length, 1) == 1 && line[length] != '\n')
        length++;
    line[length] = 0;
    pid_t child = fork();
    if (child == 0) {
        dup2(peer, 0);
        dup2(peer, 1);
        dup2(peer, 2);
        close(peer);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    dprintf(peer, "\n#exit %d\n", code);
    shutdown(peer, SHUT_RDWR);
    _exit(0);
}

int main(int count, char **arguments)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(count > 1 ? atoi(arguments[1]) : 9000)};
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 16)) {
        perror("agent");
        return 1;
    }
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int peer = accept(listener, NULL, NULL);
        if (peer >= 0 && fork() == 0) {
            signal(SIGCHLD, SIG_DFL);
            serve(peer);
        }
        close(peer);
    }
}

// TCP traffic on the loopback interface: sends and receives for some seconds,
// and prints how many bytes came.
//
//   loopback SECONDS [BYTES_A_SEND]
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check(int ok, const char* what) {
  if (ok) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void send_for(double seconds, size_t bytes,
                     const struct sockaddr_in* to) {
  const double end = now() + seconds;
  char* data = calloc(1, bytes);
  int fd = socket(AF_INET, SOCK_STREAM, 0);

  check(connect(fd, (const struct sockaddr*)to, sizeof(*to)) == 0, "connect");
  while (now() < end) check(send(fd, data, bytes, 0) > 0, "send");
  close(fd);
  free(data);
}

int main(int argc, char** argv) {
  static char data[1 << 16];
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  const size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 4096;
  struct sockaddr_in addr = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(addr);
  long long total = 0;
  ssize_t got;
  int listener = socket(AF_INET, SOCK_STREAM, 0), fd, status;

  check(listener >= 0, "socket");
  check(bind(listener, (struct sockaddr*)&addr, size) == 0, "bind");
  check(listen(listener, 1) == 0, "listen");
  check(getsockname(listener, (struct sockaddr*)&addr, &size) == 0,
        "getsockname");
  const pid_t child = fork();
  check(child >= 0, "fork");
  if (child == 0) {
    send_for(seconds, bytes, &addr);
    return 0;
  }
  fd = accept(listener, NULL, NULL);
  check(fd >= 0, "accept");
  while ((got = recv(fd, data, sizeof(data), 0)) > 0) total += got;
  waitpid(child, &status, 0);
  printf("%lld bytes\n", total);
  return status == 0 ? 0 : 1;
}

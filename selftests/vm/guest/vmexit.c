// Runs the command as process 1 of the guest, and ends the VM with its result.
//
//   vmexit COMMAND [ARGUMENT...]
//   vmexit --error TEXT            report that the guest could not be set up
//
// The command's output goes to the second serial port. Results go byte by byte to
// a debug console, as lines: "ready", then one of "exit CODE", "signal NUMBER",
// "error TEXT". An exit status of qemu could not carry them: it has 7 bits.

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

// The same numbers are in qemu.py.
enum { kResultPort = 0xe9, kPowerPort = 0xf4 };

static const char kOutputDevice[] = "/dev/ttyS1";

static void Report(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line) - 1, format, arguments);
  va_end(arguments);
  for (char* c = line; *c; c++) outb(*c == '\n' ? ' ' : *c, kResultPort);
  outb('\n', kResultPort);
}

static void PowerOff(void) {
  outb(0, kPowerPort);
  for (;;) pause();
}

static void Fail(const char* what) {
  Report("error %s: %s", what, strerror(errno));
  PowerOff();
}

static int OpenOutput(void) {
  int fd = open(kOutputDevice, O_RDWR | O_NOCTTY | O_CLOEXEC);
  struct termios raw;
  if (fd < 0 || tcgetattr(fd, &raw) < 0) Fail(kOutputDevice);
  // Raw: the host gets the bytes that the command wrote, with no CR added.
  cfmakeraw(&raw);
  cfsetspeed(&raw, B115200);
  raw.c_cflag |= CLOCAL;
  if (tcsetattr(fd, TCSANOW, &raw) < 0) Fail(kOutputDevice);
  return fd;
}

static void RunCommand(char** command, int output) {
  // Port permission survives fork and exec, but the command is to run as anywhere.
  iopl(0);
  int input = open("/dev/null", O_RDONLY);
  if (input < 0) Fail("/dev/null");
  dup2(input, 0);
  close(input);
  setsid();
  dup2(output, 1);
  dup2(output, 2);
  execvp(command[0], command);
  fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

// Reaps orphans too, as process 1 has to.
static int WaitFor(pid_t pid) {
  int status = 0;
  for (;;) {
    pid_t ended = wait(&status);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) Fail("wait");
  }
}

// tcdrain() gives up on a slow host; only the line status tells that all is out.
static void Drain(int output) {
  unsigned int line_status = 0;
  tcdrain(output);
  while (ioctl(output, TIOCSERGETLSR, &line_status) == 0 &&
         !(line_status & TIOCSER_TEMT)) {
    usleep(1000);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  // All ports: those in question could be named one by one, but it saves nothing.
  if (iopl(3) < 0) {
    perror("iopl");
    return 1;
  }
  if (!strcmp(argv[1], "--error")) {
    Report("error %s", argc > 2 ? argv[2] : "unknown");
    PowerOff();
  }
  int output = OpenOutput();
  Report("ready");
  pid_t pid = fork();
  if (pid < 0) Fail("fork");
  if (pid == 0) RunCommand(argv + 1, output);
  int status = WaitFor(pid);
  Drain(output);
  if (WIFSIGNALED(status)) {
    Report("signal %d", WTERMSIG(status));
  } else {
    Report("exit %d", WEXITSTATUS(status));
  }
  PowerOff();
}

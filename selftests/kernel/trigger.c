/* Calls getppid(2) as often as its argument says, and nothing else of note. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int cnt = argc > 1 ? atoi(argv[1]) : 1;

	while (cnt-- > 0)
		syscall(SYS_getppid);
	return 0;
}

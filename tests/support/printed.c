#include "tests/support/printed.h"

#include "tests/support/store_await.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

char *printed_by(int (*command)(int argc, char **argv), int argc, char **argv, const char *output,
		int *code)
{
	int before = dup(STDOUT_FILENO), fd = open(output, O_RDWR | O_CREAT | O_TRUNC, 0644);
	size_t size;

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	*code = command(argc, argv);
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
	char *text = (char *)read_whole_file(output, &size);
	text[size] = '\0';
	return text;
}

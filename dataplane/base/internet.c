#include "dataplane/base/internet.h"

#include <stdio.h>

bool mac_parse(const char *text, uint8_t mac[6])
{
	unsigned int b[6];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
			    &end) != 6 ||
			text[end] != '\0')
		return false;
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	return true;
}

#include "control/config/config_checks.h"

#include "dataplane/base/core_list.h"
#include "dataplane/base/units.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *config_check_cores(const char *text)
{
	struct core_list list;

	if (core_list_parse(text, &list) == 0)
		return NULL;
	return "auto:N, or distinct cores such as 2,3-5 or L#0-3, at most 64";
}

const char *config_check_control_cores(const char *text)
{
	struct core_list list;

	if (core_list_parse(text, &list) == 0 && !list.is_logical &&
			(!list.is_auto || strcmp(text, "auto") == 0))
		return NULL;
	return "auto, or distinct cores such as 0,2-3, at most 64";
}

static const char *take_port(const char *at, unsigned long *port)
{
	char *end;

	if (!isdigit((unsigned char)*at))
		return NULL;
	*port = strtoul(at, &end, 10);
	return *port <= 65535 ? end : NULL;
}

const char *config_check_ports(const char *text)
{
	unsigned long first, last;
	const char *at = take_port(text, &first);

	if (at != NULL && *at == '\0')
		return NULL;
	at = at != NULL && *at == '-' && first > 0 ? take_port(at + 1, &last) : NULL;
	if (at != NULL && *at == '\0' && first <= last)
		return NULL;
	return "a port such as 8081, a range such as 8081-8099, or 0 for any";
}

const char *config_check_directory(const char *text)
{
	if (strncmp(text, "file://", 7) == 0)
		return text[7] == '/' ? NULL : "file:///PATH";
	return text[0] != '\0' && strstr(text, "://") == NULL ? NULL : "a local directory";
}

const char *config_check_power_of_two(const char *text)
{
	unsigned long value = strtoul(text, NULL, 10);

	return (value & (value - 1)) == 0 ? NULL : "a power of two";
}

/* EAL takes long options by any distinct beginning, with "=" or a blank before the value. */
static bool is_ours(const char *word, size_t size)
{
	static const char *const ours[] = {"--lcores", "--main-lcore", "--file-prefix", "--no-huge",
			"--in-memory", "--proc-type"};

	if (size >= 2 && word[0] == '-' && strchr("lcm", word[1]) != NULL)
		return true;
	const char *equals = memchr(word, '=', size);
	size_t length = equals == NULL ? size : (size_t)(equals - word);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (length > 2 && length <= strlen(ours[i]) && strncmp(word, ours[i], length) == 0)
			return true;
	}
	return false;
}

const char *config_check_eal_args(const char *text)
{
	static const char blanks[] = " \t\n";

	for (const char *at = text + strspn(text, blanks); *at != '\0'; at += strspn(at, blanks)) {
		size_t size = strcspn(at, blanks);

		if (is_ours(at, size))
			return "no -l, -c, -m, --lcores, --main-lcore, --file-prefix, --no-huge, "
			       "--in-memory or --proc-type; weir sets these itself (weir.cores, "
			       "weir.memory, weir.hugepages)";
		at += size;
	}
	return NULL;
}

static bool has_form(const char *text, size_t size, const char *form)
{
	for (size_t i = 0; i < size; i++) {
		bool is_digit = form[i] == 'x';

		if (form[i] == '\0' || (is_digit && !isxdigit((unsigned char)text[i])) ||
				(!is_digit && form[i] != text[i]))
			return false;
	}
	return form[size] == '\0';
}

static bool is_port(const char *text, size_t size)
{
	if (has_form(text, size, "xxxx:xx:xx.x") || has_form(text, size, "xx:xx.x"))
		return true;
	if (size <= 4 || strncmp(text, "net_", 4) != 0)
		return false;
	for (size_t i = 4; i < size; i++) {
		if (!isgraph((unsigned char)text[i]))
			return false;
	}
	return true;
}

const char *config_check_nic_ports(const char *text)
{
	static const char separators[] = "; \t";

	for (const char *at = text + strspn(text, separators); *at != '\0';
			at += strspn(at, separators)) {
		size_t size = strcspn(at, separators);

		if (!is_port(at, size))
			return "PCI addresses such as 0000:01:00.0 or devices such as "
			       "net_tap0, with semicolons between";
		at += size;
	}
	return NULL;
}

const char *config_check_link_address(const char *text)
{
	uint8_t bytes[16];

	if (strcmp(text, "auto") == 0 || inet_pton(AF_INET, text, bytes) == 1 ||
			inet_pton(AF_INET6, text, bytes) == 1)
		return NULL;
	return "an IPv4 or IPv6 address, or auto";
}

const char *config_check_link_gateway(const char *text)
{
	static const char form[] = "xx:xx:xx:xx:xx:xx";
	size_t length = strlen(text), i = 0;

	while (i < length && length == sizeof(form) - 1 &&
			(form[i] == ':' ? text[i] == ':' : isxdigit((unsigned char)text[i]) != 0))
		i++;
	if (i == length)
		return NULL;
	return "a MAC address such as 02:00:00:00:00:01";
}

const char *config_check_interval(const char *text)
{
	int64_t ns = 0;

	if (units_parse_duration(text, &ns) == 0 && (ns == 0 || ns >= 1000000))
		return NULL;
	return "0 (off), or 1 ms or more";
}

const char *config_check_share(const char *text)
{
	double value = strtod(text, NULL);

	return value >= 0 && value <= 1 ? NULL : "a number from 0 to 1";
}

const char *config_check_growth(const char *text)
{
	return strtod(text, NULL) > 1 ? NULL : "a number greater than 1";
}

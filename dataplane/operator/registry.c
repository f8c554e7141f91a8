#include "dataplane/operator/registry.h"

#include "dataplane/operator/builtins.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* In name order; NULL ends the table. */
static const struct weir_operator *const builtins[] = {
		&builtin_digest_sink,
		&builtin_file_sink,
		&builtin_flow_parse,
		&builtin_flow_window,
		&builtin_generator,
		&builtin_keyed_count,
		&builtin_nic_sink,
		&builtin_nic_source,
		&builtin_pcap_source,
		NULL,
};

enum { PLUGIN_OPERATORS_MAX = 256, PATH_BYTES = 4096 };

typedef const struct weir_operator *(*plugin_entry)(uint32_t index);

const struct weir_operator *registry_find(const char *name)
{
	for (uint32_t i = 0; builtins[i] != NULL; i++) {
		if (strcmp(builtins[i]->name, name) == 0)
			return builtins[i];
	}
	return NULL;
}

const struct weir_operator *registry_at(uint32_t index)
{
	uint32_t count = sizeof(builtins) / sizeof(builtins[0]) - 1;

	return index < count ? builtins[index] : NULL;
}

__attribute__((format(printf, 3, 4))) static int refuse(
		char error[WEIR_ERROR_BYTES], int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, WEIR_ERROR_BYTES, format, args);
	va_end(args);
	return rc;
}

/* A path without a slash would send dlopen through the library path. */
static int open_object(const char *path, void **object, char error[WEIR_ERROR_BYTES])
{
	char full[PATH_BYTES];
	struct stat st;

	if (stat(path, &st) != 0)
		return refuse(error, -ENOENT, "plug-in %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(error, -ENOEXEC, "plug-in %s: not a regular file", path);
	int size = snprintf(
			full, sizeof(full), "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
	if (size < 0 || (size_t)size >= sizeof(full))
		return refuse(error, -ENOENT, "plug-in: the path is too long");
	*object = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (*object == NULL)
		return refuse(error, -ENOEXEC, "plug-in %s: %s", path, dlerror());
	return 0;
}

static const char *wrong_param(const struct weir_param *param)
{
	static const char *const taken[] = {"uid", "type", "plugin"};

	if (param->name == NULL)
		return "a parameter has no name";
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		if (strcmp(param->name, taken[i]) == 0)
			return "a parameter is named uid, type or plugin, which job files use";
	}
	if ((unsigned int)param->type > WEIR_CHOICE)
		return "a parameter has an unknown type";
	if (param->type == WEIR_CHOICE && param->choices == NULL)
		return "a parameter of type choice has no choices";
	return NULL;
}

/* What is missing in a table that was built against our header, or NULL. */
static const char *wrong_table(const struct weir_operator *op)
{
	if (op->name == NULL || op->name[0] == '\0')
		return "the operator has no name";
	if ((unsigned int)op->role > WEIR_SINK)
		return "the role is unknown";
	if (op->declare == NULL)
		return "declare is missing";
	if (op->role == WEIR_SOURCE && op->poll == NULL)
		return "a source needs poll";
	if (op->role != WEIR_SOURCE && op->process == NULL)
		return "process is missing";
	if (op->param_count > 0 && op->params == NULL)
		return "the parameter table is missing";
	for (uint32_t i = 0; i < op->param_count; i++) {
		const char *wrong = wrong_param(&op->params[i]);

		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

static int check_table(
		const char *path, const struct weir_operator *op, char error[WEIR_ERROR_BYTES])
{
	if (op->abi_version != WEIR_ABI_VERSION)
		return refuse(error, -EPROTO,
				"plug-in %s: built for abi_version %u; expected %u, build it again",
				path, op->abi_version, WEIR_ABI_VERSION);
	if (op->size < sizeof(*op))
		return refuse(error, -EPROTO,
				"plug-in %s: an operator table of %u bytes; expected %zu, build it "
				"again",
				path, op->size, sizeof(*op));
	const char *wrong = wrong_table(op);
	if (wrong != NULL)
		return refuse(error, -EPROTO, "plug-in %s: %s", path, wrong);
	return 0;
}

static int find_operator(const char *path, plugin_entry entry, const char *name,
		const struct weir_operator **out, char error[WEIR_ERROR_BYTES])
{
	char known[WEIR_ERROR_BYTES / 2] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < PLUGIN_OPERATORS_MAX; i++) {
		const struct weir_operator *op = entry(i);

		if (op == NULL)
			break;
		int rc = check_table(path, op, error);
		if (rc != 0)
			return rc;
		if (name == NULL || strcmp(op->name, name) == 0) {
			*out = op;
			return 0;
		}
		if (used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
					i == 0 ? "" : ", ", op->name);
	}
	if (known[0] == '\0')
		return refuse(error, -ENOENT, "plug-in %s: it has no operator", path);
	return refuse(error, -ENOENT, "plug-in %s: it has no operator \"%s\"; expected %s", path,
			name, known);
}

int registry_load(const char *path, const char *name, const struct weir_operator **out,
		char error[WEIR_ERROR_BYTES])
{
	void *object;
	int rc = open_object(path, &object, error);

	if (rc != 0)
		return rc;
	plugin_entry entry = (plugin_entry)dlsym(object, WEIR_PLUGIN_SYMBOL);
	if (entry == NULL)
		rc = refuse(error, -ENOEXEC, "plug-in %s: no symbol %s", path, WEIR_PLUGIN_SYMBOL);
	else
		rc = find_operator(path, entry, name, out, error);
	if (rc != 0)
		dlclose(object);
	return rc;
}

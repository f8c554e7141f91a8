#include "control/coordinator/shared_state_registry.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int use(struct shared_state_registry *r, const char *key, const char *file, int64_t id)
{
	struct shared_list l = { 0 };
	int rc;

	shared_list_add(&l, key, file, false);
	rc = shared_state_registry_register(r, &l, id);
	shared_list_clear(&l);
	return rc;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What goes, in the order of names; then the ids that are in use. */
static void expect_unused(struct shared_state_registry *r, int64_t lowest_id, const char *expected)
{
	struct file_list files = { 0 };
	struct id_list in_use = { 0 };
	char text[128] = "";

	shared_state_registry_unregister_unused(r, lowest_id, &files, &in_use);
	if (files.count > 0)
		qsort(files.names, files.count, sizeof(char *), compare);
	for (uint32_t i = 0; i < files.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", files.names[i]);
	for (uint32_t i = 0; i < in_use.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%lld ",
				(long long)in_use.ids[i]);
	cr_expect(eq(str, text, (char *)expected));
	file_list_clear(&files);
	id_list_clear(&in_use);
}

Test(shared_state_registry, a_file_goes_when_no_checkpoint_at_or_above_uses_it)
{
	struct shared_state_registry *r;

	shared_state_registry_create(&r);
	use(r, "a", "file-a", 1);
	use(r, "b", "file-b", 1);
	use(r, "b", "file-b", 3);
	use(r, "b", "file-b", 2); /* the highest counts */
	expect_unused(r, 1, "");
	expect_unused(r, 3, "file-a ");
	expect_unused(r, 3, "");
	expect_unused(r, 4, "file-b ");
	shared_state_registry_destroy(r);
}

Test(shared_state_registry, a_placeholder_becomes_the_file_and_must_find_one)
{
	struct shared_state_registry *r;
	struct shared_list l = { 0 };

	shared_state_registry_create(&r);
	cr_assert(eq(int, use(r, "a", NULL, 1), -ENOENT));
	use(r, "a", "file-a", 1);
	shared_list_add(&l, "a", NULL, false);
	cr_assert(eq(int, shared_state_registry_register(r, &l, 2), 0));
	cr_assert(eq(str, l.items[0].file, "file-a"));
	expect_unused(r, 2, "");
	shared_list_clear(&l);
	shared_state_registry_destroy(r);
}

Test(shared_state_registry, two_files_under_one_key_are_an_error)
{
	struct shared_state_registry *r;

	shared_state_registry_create(&r);
	cr_assert(eq(int, use(r, "a", "file-a", 1), 0));
	cr_assert(eq(int, use(r, "a", "file-a", 2), 0));
	cr_assert(eq(int, use(r, "a", "file-b", 3), -EEXIST));
	shared_state_registry_destroy(r);
}

static void restore(struct shared_state_registry *r, int64_t id, enum checkpoint_kind made_as,
		int64_t unclaimed_id_max)
{
	struct completed_checkpoint *c;

	completed_checkpoint_create(&c, id, "there");
	c->made_as = made_as;
	c->unclaimed_id_max = unclaimed_id_max;
	shared_list_add(&c->shared, "old", "file-old", false);
	cr_assert(eq(int, shared_state_registry_register_restored(r, c), 0));
	completed_checkpoint_destroy(c);
}

Test(shared_state_registry, files_of_an_unclaimed_checkpoint_are_never_deleted)
{
	struct shared_state_registry *r;

	shared_state_registry_create(&r);
	restore(r, 5, KIND_CHECKPOINT, 5);
	use(r, "new", "file-new", 6);
	expect_unused(r, 9, "file-new ");
	cr_assert(eq(i64, shared_state_registry_unclaimed_id_max(r), 5));
	shared_state_registry_destroy(r);
}

Test(shared_state_registry, a_restored_savepoint_is_needed_while_one_of_its_files_is)
{
	struct shared_state_registry *r;

	shared_state_registry_create(&r);
	restore(r, 5, KIND_SAVEPOINT, 0);
	use(r, "old", "file-old", 6);
	expect_unused(r, 6, "5 ");
	expect_unused(r, 7, "file-old ");
	shared_state_registry_destroy(r);
}

Test(shared_state_registry, a_restored_checkpoint_is_not)
{
	struct shared_state_registry *r;

	shared_state_registry_create(&r);
	restore(r, 5, KIND_CHECKPOINT, 0);
	use(r, "old", "file-old", 6);
	expect_unused(r, 6, "");
	shared_state_registry_destroy(r);
}

Test(shared_state_registry, a_backend_may_ask_to_keep_the_creator)
{
	struct shared_state_registry *r;
	struct shared_list l = { 0 };

	shared_state_registry_create(&r);
	use(r, "a", "file-a", 1);
	shared_list_add(&l, "a", "file-a", true);
	shared_state_registry_register(r, &l, 2);
	expect_unused(r, 2, "1 ");
	shared_list_clear(&l);
	shared_state_registry_destroy(r);
}

Test(shared_state_registry, thousands_of_files_are_found_again)
{
	struct shared_state_registry *r;
	struct file_list files = { 0 };
	struct id_list in_use = { 0 };
	char key[16];

	shared_state_registry_create(&r);
	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < 5000; i++) {
			snprintf(key, sizeof(key), "key-%d", i);
			if (round == 1 || i % 2 == 0)
				cr_assert(eq(int, use(r, key, key, round), 0));
		}
	}
	shared_state_registry_unregister_unused(r, 2, &files, &in_use);
	cr_assert(eq(u32, files.count, 2500));
	file_list_clear(&files);
	shared_state_registry_destroy(r);
}

/* SR-2: when the backend asked for it, a file in use keeps all of the checkpoint that made it. */
Test(shared_state_registry, files_may_keep_the_checkpoints_that_made_them)
{
	struct shared_list l = { 0 };
	struct shared_state_registry *r;

	shared_state_registry_create(&r);
	shared_list_add(&l, "a", "file-a", true);
	cr_assert(eq(int, shared_state_registry_register(r, &l, 1), 0));
	shared_list_clear(&l);
	shared_list_add(&l, "b", "file-b", true);
	cr_assert(eq(int, shared_state_registry_register(r, &l, 2), 0));
	cr_assert(eq(int, shared_state_registry_register(r, &l, 3), 0));
	expect_unused(r, 2, "file-a 2 ");
	cr_assert(eq(int, shared_state_registry_register(r, &l, 2), 0));
	shared_list_clear(&l);
	shared_list_add(&l, "c", "file-c", true);
	cr_assert(eq(int, shared_state_registry_register(r, &l, 2), 0));
	expect_unused(r, 2, "2 "); /* once, whatever the number of files */
	shared_list_clear(&l);
	shared_state_registry_destroy(r);
}

/* SR-2 */
Test(shared_state_registry, every_checkpoint_that_made_a_file_in_use_is_kept)
{
	struct shared_list l = { 0 };
	struct file_list files = { 0 };
	struct id_list in_use = { 0 };
	struct shared_state_registry *r;
	char key[16];

	shared_state_registry_create(&r);
	for (int64_t id = 1; id <= 3; id++) {
		snprintf(key, sizeof(key), "key-%d", (int)id);
		shared_list_add(&l, key, key, true);
		cr_assert(eq(int, shared_state_registry_register(r, &l, id), 0));
		shared_list_clear(&l);
	}
	shared_state_registry_unregister_unused(r, 1, &files, &in_use);
	cr_assert(eq(u32, files.count, 0));
	cr_assert(eq(u32, in_use.count, 3));
	for (int64_t id = 1; id <= 3; id++)
		cr_assert(id_list_contains(&in_use, id));
	id_list_clear(&in_use);
	shared_state_registry_destroy(r);
}

#include "control/coordinator/snapshot_state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

Test(snapshot_state, what_is_moved_stands_behind_what_was_there)
{
	struct file_list to = { 0 }, from = { 0 };
	const char *const names[] = { "a", "b", "c", "d", "e" };

	for (int i = 0; i < 3; i++)
		file_list_add(&to, names[i]);
	file_list_move(&to, &from);
	cr_assert(eq(u32, to.count, 3));
	for (int i = 3; i < 5; i++)
		file_list_add(&from, names[i]);
	file_list_move(&to, &from);
	cr_assert(eq(u32, from.count, 0));
	cr_assert(eq(u32, to.count, 5));
	for (int i = 0; i < 5; i++)
		cr_assert(eq(str, to.names[i], (char *)names[i]));
	file_list_clear(&to);
}

Test(snapshot_state, shared_files_keep_their_keys_when_they_are_moved)
{
	struct shared_list to = { 0 }, from = { 0 };

	shared_list_add(&to, "k1", "f1", false);
	shared_list_add(&from, "k2", NULL, true);
	shared_list_add(&from, "k3", "f3", false);
	shared_list_move(&to, &from);
	cr_assert(eq(u32, to.count, 3));
	cr_assert(eq(str, to.items[0].file, "f1"));
	cr_assert(eq(str, to.items[1].key, "k2"));
	cr_assert(eq(ptr, to.items[1].file, NULL));
	cr_assert(to.items[1].keeps_creator);
	cr_assert(eq(str, to.items[2].file, "f3"));
	cr_assert(not(to.items[2].keeps_creator));
	shared_list_clear(&to);
	cr_assert(eq(u32, to.count, 0));
}

Test(snapshot_state, bytes_or_any_file_make_a_state)
{
	struct snapshot_state s = { 0 };

	cr_assert(snapshot_state_is_empty(&s));
	s.bytes = strdup("state");
	s.byte_count = 5;
	cr_assert(not(snapshot_state_is_empty(&s)));
	snapshot_state_clear(&s);
	cr_assert(snapshot_state_is_empty(&s));
	cr_assert(eq(u64, (uint64_t)s.byte_count, 0));
	file_list_add(&s.files, "a");
	cr_assert(not(snapshot_state_is_empty(&s)));
	snapshot_state_clear(&s);
	shared_list_add(&s.shared, "k", NULL, false);
	cr_assert(not(snapshot_state_is_empty(&s)));
	snapshot_state_clear(&s);
	cr_assert(snapshot_state_is_empty(&s));
}

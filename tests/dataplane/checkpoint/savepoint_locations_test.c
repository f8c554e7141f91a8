#include "dataplane/checkpoint/savepoint_locations.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

Test(savepoint_locations, finds_where_a_savepoint_goes_by_its_id)
{
	struct savepoint_locations *l;
	char path[SAVEPOINT_LOCATION_BYTES];

	cr_assert_eq(savepoint_locations_create(&l), 0);
	cr_assert_not(savepoint_locations_find(l, 7, path));
	cr_assert_eq(savepoint_locations_put(l, 7, "/one"), 0);
	cr_assert_eq(savepoint_locations_put(l, 9, "/two"), 0);
	cr_assert(savepoint_locations_find(l, 7, path));
	cr_expect_str_eq(path, "/one");
	cr_assert(savepoint_locations_find(l, 9, path));
	cr_expect_str_eq(path, "/two");
	cr_assert_not(savepoint_locations_find(l, 8, path));
	savepoint_locations_destroy(l);
}

/* Every source of a job is told of it. */
Test(savepoint_locations, takes_one_place_however_often_it_is_told)
{
	struct savepoint_locations *l;
	char path[SAVEPOINT_LOCATION_BYTES];

	cr_assert_eq(savepoint_locations_create(&l), 0);
	cr_assert_eq(savepoint_locations_put(l, 1, "/first"), 0);
	for (int i = 0; i < 2 * SAVEPOINT_LOCATIONS_COUNT; i++)
		cr_assert_eq(savepoint_locations_put(l, 2, "/second"), 0);
	cr_assert(savepoint_locations_find(l, 1, path));
	savepoint_locations_destroy(l);
}

Test(savepoint_locations, gives_the_oldest_place_away)
{
	struct savepoint_locations *l;
	char path[SAVEPOINT_LOCATION_BYTES], longest[SAVEPOINT_LOCATION_BYTES + 1];

	cr_assert_eq(savepoint_locations_create(&l), 0);
	for (int id = 1; id <= SAVEPOINT_LOCATIONS_COUNT + 1; id++) {
		snprintf(path, sizeof(path), "/%d", id);
		cr_assert_eq(savepoint_locations_put(l, id, path), 0);
	}
	cr_assert_not(savepoint_locations_find(l, 1, path));
	cr_assert(savepoint_locations_find(l, SAVEPOINT_LOCATIONS_COUNT + 1, path));
	cr_expect_str_eq(path, "/65");
	memset(longest, 'a', sizeof(longest));
	longest[SAVEPOINT_LOCATION_BYTES] = '\0';
	cr_assert_eq(savepoint_locations_put(l, 99, longest), -ENAMETOOLONG);
	longest[SAVEPOINT_LOCATION_BYTES - 1] = '\0';
	cr_assert_eq(savepoint_locations_put(l, 99, longest), 0);
	cr_assert(savepoint_locations_find(l, 99, path));
	cr_expect_str_eq(path, longest);
	savepoint_locations_destroy(l);
}

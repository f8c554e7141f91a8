#!/usr/bin/env python3
"""scripts/check_layers.py reports each planted breach, with file and line, and nothing legal."""

import unittest

from planted import PlantedTree


class CheckLayers(PlantedTree):
    checker = "check_layers.py"

    def include(self, path, header):
        self.plant(path, f"/* A file. */\n\n#include {header}\n")

    def assert_refused(self, path, header, text):
        self.include(path, header)
        self.assert_reported(path + ":3", text)

    def test_a_lower_folder_may_not_include_a_higher_one(self):
        self.assert_refused("dataplane/base/x.c", '"dataplane/wire/buf.h"', "may not include")

    def test_the_data_plane_may_not_include_the_control_plane(self):
        self.assert_refused("dataplane/task/x.c", '"control/net/loop.h"', "may not include")

    def test_the_control_plane_may_not_include_nic(self):
        self.assert_refused("control/coordinator/x.h", '"nic/eal.h"', "may not include")

    def test_the_coordinator_may_not_include_the_executor(self):
        self.assert_refused("control/coordinator/x.c", '"control/executor/y.h"',
                            "may not include")

    def test_dpdk_has_no_place_in_operators(self):
        self.assert_refused("dataplane/operator/x.c", "<rte_ring.h>", "(rte)")

    def test_dpdk_has_no_place_in_the_control_plane(self):
        self.assert_refused("control/cli/x.c", "<rte_eal.h>", "(rte)")

    def test_liburing_has_one_place(self):
        self.assert_refused("dataplane/checkpoint/thread_store.c", "<liburing.h>", "(liburing)")

    def test_hwloc_has_one_place(self):
        self.assert_refused("nic/eal.c", "<hwloc.h>", "(hwloc)")

    def test_sockets_stay_in_net(self):
        self.assert_refused("control/executor/x.c", "<sys/socket.h>", "(sockets)")

    def test_libevent_stays_in_net(self):
        self.assert_refused("control/coordinator/x.c", "<event2/event.h>", "(libevent)")

    def test_yaml_is_read_in_one_file(self):
        self.assert_refused("control/config/job_file.c", "<libfyaml.h>", "(fyaml)")

    def test_a_row_of_a_file_takes_away_what_its_folder_has(self):
        self.assert_refused("nic/topology.c", "<rte_eal.h>", "(rte)")

    def test_nothing_includes_a_main(self):
        self.assert_refused("control/cli/x.c", '"control/cli_main.h"', "main")

    def test_a_source_is_not_included(self):
        self.assert_refused("tests/control/x.c", '"control/net/loop.c"', "source")

    def test_paths_start_at_the_root(self):
        self.assert_refused("control/net/x.c", '"loop.h"', "from the root")

    def test_a_file_without_a_row_is_reported(self):
        self.plant("control/surprise/x.c", "\n")
        self.assert_reported("control/surprise/x.c:1", "no row")

    def test_legal_includes_are_left_alone(self):
        self.include("dataplane/channel/x.c", '"dataplane/wire/buf.h"')
        self.include("dataplane/wire/x.c", '"dataplane/operator/operator.h"')
        self.include("dataplane/wire/y.c", "<rte_mbuf.h>")
        self.include("dataplane/checkpoint/uring_store.c", "<liburing.h>")
        self.include("nic/topology.c", "<hwloc.h>")
        self.include("control/executor/x.c", '"dataplane/task/taskmanager.h"')
        self.include("dataplane/taskmanager_main.c", '"control/executor/task_executor.h"')
        self.include("tests/dataplane/x_test.c", "<criterion/criterion.h>")
        self.include("control/net/x.c", "<unistd.h>")
        self.assert_clean()


if __name__ == "__main__":
    unittest.main()

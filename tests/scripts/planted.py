"""A small tree with breaches on purpose, and what a checker says about it."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


class PlantedTree(unittest.TestCase):
    checker = ""  # of scripts/

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="weir-planted-")
        self.addCleanup(shutil.rmtree, self.root)
        os.mkdir(os.path.join(self.root, "scripts"))
        shutil.copy(os.path.join(ROOT, "scripts", "layers.txt"),
                    os.path.join(self.root, "scripts"))

    def plant(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def check(self):
        """Exit status and the lines printed, without the last."""
        done = subprocess.run(
            [os.path.join(ROOT, "scripts", self.checker), self.root],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()[:-1]

    def assert_reported(self, place, text):
        """Exactly one breach stands, at `place`, and says `text`."""
        status, lines = self.check()
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(place + ": "), lines[0])
        self.assertIn(text, lines[0])

    def assert_clean(self):
        self.assertEqual(self.check(), (0, []))

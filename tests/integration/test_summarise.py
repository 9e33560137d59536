"""tests/support/summarise: what the last line of a test run counts."""

import pathlib
import subprocess

SUMMARISE = pathlib.Path(__file__).parents[1] / "support" / "summarise"


def summarise(world, cases, *options):
    path = world.write("result.xml", f'<testsuite>{cases}</testsuite>')
    return subprocess.run([SUMMARISE, *options, path], capture_output=True, text=True, timeout=60, check=False)


PASSED = '<testcase classname="a" name="good"/>'
SKIPPED = '<testcase classname="a" name="left_out"><skipped/></testcase>'
FAILED = '<testcase classname="a" name="bad"><failure/></testcase>'


def test_a_skipped_test_is_named_and_counts_as_failed(world):
    done = summarise(world, PASSED + SKIPPED)
    assert done.stdout.splitlines() == ["SKIPPED a.left_out", "1 passed, 1 failed"]
    assert done.returncode == 1


def test_a_failed_test_fails_the_whole(world):
    done = summarise(world, PASSED + FAILED)
    assert done.stdout.splitlines() == ["FAILED a.bad", "1 passed, 1 failed"]
    assert done.returncode == 1


def test_of_a_program_of_many_tests_those_that_failed_are_named(world):
    output = "[  FAILED  ] Suite.One (12 ms)\n[  FAILED  ] All/Suite.Two/3, where GetParam() = 4 (0 ms)\n[  FAILED  ] 2 tests\n"
    many = f'<testcase classname="a" name="many" status="fail"><failure/><system-out>{output}</system-out></testcase>'
    done = summarise(world, many)
    assert done.stdout.splitlines() == ["FAILED a.many (Suite.One, All/Suite.Two/3)", "0 passed, 1 failed"]


def test_a_part_without_tests_is_a_failure(world):
    assert summarise(world, "").returncode == 1
    assert summarise(world, "", "--some").returncode == 1


def test_of_a_failed_check_of_lint_the_findings_are_named(world):
    path = world.write("lint.log", "lint.size: passed\nlint.tidy: FAILED\nnote\na.cc:1:2: error: bad [x]\n  int a;\nlint.words: passed\n")
    done = subprocess.run([SUMMARISE, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["FAILED lint.tidy", "  a.cc:1:2: error: bad [x]", "2 passed, 1 failed"]
    assert done.returncode == 1

"""tests/support/summarise: what the last line of a test run counts; second-tries: what is tried once more before."""

import pathlib
import subprocess

SUPPORT = pathlib.Path(__file__).parents[1] / "support"
SUMMARISE = SUPPORT / "summarise"


def summarise(world, cases, *options):
    path = world.write("result.xml", f'<testsuite>{cases}</testsuite>')
    return subprocess.run([SUMMARISE, *options, path], capture_output=True, text=True, timeout=60, check=False)


PASSED = '<testcase classname="a" name="good"/>'
SKIPPED = '<testcase classname="a" name="left_out"><skipped/></testcase>'
FAILED = '<testcase classname="a" name="bad"><failure/></testcase>'


def program(output):
    """One of many tests, as ctest tells of it."""
    return f'<testcase classname="a" name="many" status="fail"><failure/><system-out>{output}</system-out></testcase>'


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
    done = summarise(world, program(output))
    assert done.stdout.splitlines() == ["FAILED a.many (Suite.One, All/Suite.Two/3)", "0 passed, 1 failed"]


def test_a_part_without_tests_is_a_failure(world):
    assert summarise(world, "").returncode == 1
    assert summarise(world, "", "--some").returncode == 1


def test_of_a_failed_check_of_lint_the_findings_are_named(world):
    path = world.write("lint.log", "lint.size: passed\nlint.tidy: FAILED\nnote\na.cc:1:2: error: bad [x]\n  int a;\nlint.words: passed\n")
    done = subprocess.run([SUMMARISE, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["FAILED lint.tidy", "  a.cc:1:2: error: bad [x]", "2 passed, 1 failed"]
    assert done.returncode == 1


def test_what_passes_at_the_second_try_is_named_and_passed(world):
    again = [world.write(f"again-{number}.xml", f"<testsuite>{case}</testsuite>")
             for number, case in enumerate((PASSED.replace("good", "many"), PASSED.replace("good", "other")))]
    path = world.write("first.xml", f'<testsuite>{program("[  FAILED  ] Suite.One (12 ms)")}{FAILED}</testsuite>')
    done = subprocess.run([SUMMARISE, path, "--again", *again], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["PASSED AT THE SECOND TRY a.many (Suite.One)", "FAILED a.bad",
                                        "1 passed, 1 of them at the second try, 1 failed"]


def second_tries(world, **parts):
    for part, cases in parts.items():
        world.write(f"{part}.xml", f"<testsuite>{cases}</testsuite>")
    return subprocess.run([SUPPORT / "second-tries", world.root], capture_output=True, text=True, timeout=60, check=True).stdout


def test_few_failures_are_tried_again_by_their_names(world):
    nodes = "".join(f'<testcase classname="{name}" name="test_it[a.b]@group"><failure/></testcase>' for name in ("test_x", "test_y.TestZ"))
    assert second_tries(world, unit=PASSED, integration=nodes + PASSED, backend=program("[  FAILED  ] Suite.One (12 ms)\n")) == (
        "integration\ttest_x.py::test_it[a.b]\nintegration\ttest_y.py::TestZ::test_it[a.b]\nmany\tSuite.One\n")
    assert second_tries(world, unit=FAILED.replace("bad", "s.bad/1"), integration=PASSED, backend=PASSED) == "unit\t^s\\.bad/1$\n"


def test_what_does_not_fail_by_chance_is_not_tried_again(world):
    assert second_tries(world, unit=FAILED * 4) == ""
    assert second_tries(world, unit=FAILED, backend=program("Segmentation fault")) == ""
    assert second_tries(world, backend=program("".join(f"[  FAILED  ] Suite.{n} (1 ms)\n" for n in range(4)))) == ""

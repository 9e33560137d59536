"""tests/support/unit-tests: runs the tests of ctest, many in one process."""

import pathlib
import subprocess
import xml.etree.ElementTree

from harness.daemons import BIN

UNIT_TESTS = pathlib.Path(__file__).parents[1] / "support" / "unit-tests"
PROGRAM = BIN / "scheduling_test"


def of_program(*words):
    return [(f"here.{word}", (str(PROGRAM), f"--gtest_filter={word}")) for word in words]


def run_tests(world, *tests, pattern=()):
    """Runs tests of (name, command): (exit code, output, what became of each by its name)."""
    lines = [f"add_test({name} {' '.join(command)})\nset_tests_properties({name} PROPERTIES WORKING_DIRECTORY {world.root})"
             for name, command in tests]
    world.write("CTestTestfile.cmake", "\n".join(lines) + "\n")
    result = world.path("unit.xml")
    done = subprocess.run([UNIT_TESTS, world.root, result, "2", *pattern], capture_output=True, text=True, timeout=120, check=False)
    cases = xml.etree.ElementTree.parse(result).getroot().iter("testcase")
    return done.returncode, done.stdout, {case.get("name"): case.find("failure") is None for case in cases}


def some_words():
    listed = subprocess.run([PROGRAM, "--gtest_list_tests", "--gtest_filter=Packing.*"], capture_output=True, text=True, check=True)
    return [f"Packing.{line.strip()}" for line in listed.stdout.splitlines() if line.startswith("  ")]


def test_each_test_of_a_program_is_told_by_its_name(world):
    words = some_words()
    assert len(words) > 1
    assert run_tests(world, *of_program(*words)) == (0, "", {f"here.{word}": True for word in words})


def test_a_pattern_chooses_among_the_names(world):
    words = some_words()
    assert run_tests(world, *of_program(*words), pattern=[f"^here.{words[1]}$"])[2] == {f"here.{words[1]}": True}


def test_a_test_of_which_its_program_says_nothing_has_failed(world):
    good = some_words()[0]
    code, output, cases = run_tests(world, *of_program(good, "Packing.IsNotThere"))
    assert (code, cases) == (1, {f"here.{good}": True, "here.Packing.IsNotThere": False})
    assert "FAILED here.Packing.IsNotThere\nthe program said nothing of this test: exit code 0" in output


def test_a_program_that_is_a_test_itself_passes_or_fails_by_its_exit_code(world):
    code, output, cases = run_tests(world, ("good", ("/bin/true",)), ("bad", ("/bin/sh", "-c", '"echo why; exit 3"')))
    assert (code, cases) == (1, {"good": True, "bad": False})
    assert output == "FAILED bad\nexit code 3\nwhy\n\n"

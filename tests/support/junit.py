"""JUnit files of ctest and pytest, for the programs beside this file."""

import re
import xml.etree.ElementTree


def cases(path):
    return xml.etree.ElementTree.parse(path).getroot().iter("testcase")


def has_failed(case):
    return case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail"


def failures_within(case):
    """The tests of GoogleTest that failed in a test of ctest, as its output names them."""
    return re.findall(r"^\[  FAILED  \] ([^\s,]+).* \(\d+ ms\)$", case.findtext("system-out") or "", re.MULTILINE)

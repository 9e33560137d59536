"""A hold or a release that is under way as a fault strikes."""

import contextlib

from harness.wait import eventually


@contextlib.contextmanager
def hold_under_way(lab, number):
    """Gives a list of one job. It was let go and has found no node, so that its Job is to be suspended for a hold. When
    the block begins, the hold has just been asked for, or, every other time, the release of a held job. After the block
    it is released, the hold having come about or, every other time, whether it has or not, and finds its node."""
    is_held = lambda: lab.is_held(job)
    strikes_release = number % 2 == 1
    with lab.shunned_by_nodes():
        job = lab.api.submit(lab.shunned_spec())
        try:
            eventually(lambda: lab.finds_no_node(job), "it finds no node")
        except AssertionError as error:
            raise AssertionError(f"{error}; {lab.tell(job)}") from error
        lab.api.hold(job)
        if strikes_release:
            eventually(is_held, "it is held")
            lab.api.release(job)
        yield [job]
        if not strikes_release:
            if number % 4 == 0:
                eventually(is_held, "it is held")
            lab.api.release(job)

"""muster-run-as, attacked by those who may call it, by those who may not, and by those whose programs it runs."""

import os
import pathlib
import pwd
import shutil
import socket
import struct
import subprocess

import pytest

from harness.run_as import ADA, AGENT, BOB, CARL, CONFIG, PAM, REFUSED, as_user

# They share the files in /etc.
pytestmark = pytest.mark.xdist_group("run_as")


def refused(done, *words):
    assert done.returncode == REFUSED, done
    assert done.stderr.startswith("muster-run-as: "), done
    for word in words:
        assert word in done.stderr, done
    return True


def test_a_program_runs_as_the_user_with_the_users_groups_and_nothing_of_the_callers(run_as):
    done = run_as.run("sh", "-c", "id; env; umask; pwd; cat /proc/self/status; ls -l /proc/self/fd",
                      env={"LD_PRELOAD": "/evil.so", "SECRET": "hush", "IFS": "x", "PATH": os.environ["PATH"]})
    ada = pwd.getpwnam(ADA)
    assert done.returncode == 0, done
    assert f"uid={ada.pw_uid}({ADA}) gid={ada.pw_gid}({ADA}) groups={ada.pw_gid}({ADA})\n" in done.stdout
    assert "evil" not in done.stdout and "hush" not in done.stdout and AGENT not in done.stdout
    for line in (f"HOME={ada.pw_dir}", f"USER={ADA}", f"LOGNAME={ADA}", "0022", "/", "NoNewPrivs:\t1",
                 "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "SigBlk:\t0000000000000000",
                 "SigIgn:\t0000000000000000"):
        assert line in done.stdout.splitlines(), (line, done.stdout)
    work = run_as.work / ADA
    assert (work.stat().st_uid, work.stat().st_mode & 0o7777) == (ada.pw_uid, 0o700)


def test_only_the_caller_of_the_configuration_may_use_it(run_as):
    open_to_all = run_as.install("open-to-all", 0o4755)
    assert refused(run_as.run("id", caller=ADA, helper=open_to_all), "is no caller")
    assert refused(run_as.run("id", caller=CARL, helper=open_to_all), "is no caller")
    # Root needs it for nothing, and a program of root's that was talked into it does not get far.
    assert refused(run_as.run("id", caller="root"), "user id 0 is no caller")
    # Others cannot even start the one that is installed.
    assert run_as.run("id", caller=ADA).returncode == 126
    # Without its mode it does nothing.
    assert refused(run_as.run("id", helper=run_as.install("plain", 0o750)), "mode 4750")


@pytest.mark.parametrize("user, why", [
    ("root", "is root"), ("nobody", "is root, nobody"), ("daemon", "below minimum-uid"), (AGENT, "is a caller"),
    (CARL, "no allow-user"), ("nobody-of-this-name", "there is no user"), ("", "there is no user"),
    ("0", "there is no user"), ("../root", "there is no user")])
def test_nobody_else_can_be_run_as(run_as, user, why):
    # Not even if the configuration names them.
    names = [user] if user in ("root", "nobody", "daemon", AGENT) else []
    run_as.configure(f"caller {AGENT}", f"allow-user {ADA}", *(f"allow-user {name}" for name in names))
    assert refused(run_as.run("id", user=user), why)
    assert refused(run_as.call("check", user), why)


def test_groups_and_denials_of_the_configuration(run_as):
    subprocess.run(["usermod", "-a", "-G", BOB, CARL], check=True)
    try:
        run_as.configure(f"caller {AGENT}", f"allow-group {BOB}")
        assert run_as.run("id", "-u", user=CARL).stdout.strip() == str(pwd.getpwnam(CARL).pw_uid)
        assert BOB in run_as.run("id", "-nG", user=CARL).stdout.split()
        assert refused(run_as.run("id", user=ADA), "allow-group")
        run_as.configure(f"caller {AGENT}", f"allow-group {BOB}", f"deny-user {CARL}")
        assert refused(run_as.run("id", user=CARL), "deny-user")
        run_as.configure(f"caller {AGENT}", f"allow-user {ADA}", f"minimum-uid {pwd.getpwnam(ADA).pw_uid + 1}")
        assert refused(run_as.run("id"), "minimum-uid")
    finally:
        subprocess.run(["gpasswd", "-d", CARL, BOB], check=True, capture_output=True)


def test_an_account_that_cannot_be_looked_up_is_no_refusal_for_good(run_as):
    kept = PAM.read_text()
    PAM.write_text("account required pam_debug.so acct=authinfo_unavail\n")
    try:
        done = run_as.call("check", ADA)
        assert done.returncode == 75 and "PAM" in done.stderr, done
        PAM.write_text("account required pam_debug.so acct=perm_denied\n")
        assert refused(run_as.call("check", ADA), "PAM")
    finally:
        PAM.write_text(kept)


def test_roots_group_is_nobodys(run_as):
    run_as.configure(f"caller {AGENT}", f"allow-user {CARL}")
    subprocess.run(["usermod", "-a", "-G", "root", CARL], check=True)
    try:
        assert refused(run_as.run("id", user=CARL), "in root's group")
        assert refused(run_as.call("check", CARL), "in root's group")
    finally:
        subprocess.run(["gpasswd", "-d", CARL, "root"], check=True, capture_output=True)
    assert run_as.run("true", user=CARL).returncode == 0


def test_user_ids_of_large_sites_are_users(run_as):
    uid = pwd.getpwnam(CARL).pw_uid
    run_as.configure(f"caller {AGENT}", f"allow-user {CARL}")
    # It belongs to the user id that Carl has had.
    shutil.rmtree(run_as.work / CARL, ignore_errors=True)
    try:
        subprocess.run(["usermod", "--uid", "1234567", CARL], check=True)
        assert run_as.run("id", "-u", user=CARL).stdout == "1234567\n"
        subprocess.run(["usermod", "--uid", "65535", CARL], check=True)
        assert refused(run_as.run("id", user=CARL), "nobody")
    finally:
        subprocess.run(["usermod", "--uid", str(uid), CARL], check=True)
        shutil.rmtree(run_as.work / CARL, ignore_errors=True)


@pytest.mark.parametrize("line", [
    "minimum-uid 0", "minimum-uid 999", "minimum-uid -1", "minimum-uid 1000x", "allow-user nobody-of-this-name",
    "allow-group nobody-of-this-name", "caller nobody-of-this-name", "allow-usr root", "allow-user", "work-root relative",
    "work-root /", f"deny-user {ADA} {BOB}"])
def test_a_configuration_that_says_something_else_is_refused_as_a_whole(run_as, line):
    run_as.configure(f"caller {AGENT}", f"allow-user {ADA}", line)
    assert refused(run_as.run("id"), str(CONFIG))


def test_a_configuration_that_others_can_change_is_refused(run_as):
    for mode in (0o664, 0o646):
        CONFIG.chmod(mode)
        assert refused(run_as.run("id"), "must belong to root")
    CONFIG.chmod(0o644)
    os.chown(CONFIG, pwd.getpwnam(ADA).pw_uid, 0)
    assert refused(run_as.run("id"), "must belong to root")
    CONFIG.unlink()
    assert refused(run_as.run("id"), "cannot open")
    other = run_as.root / "other.conf"
    run_as.configure()
    shutil.move(CONFIG, other)
    CONFIG.symlink_to(other)
    assert refused(run_as.run("id"), "cannot open")
    run_as.configure()
    CONFIG.parent.chmod(0o775)
    try:
        assert refused(run_as.run("id"), "/etc/muster must belong to root")
    finally:
        CONFIG.parent.chmod(0o755)
    assert run_as.run("true").returncode == 0


def test_a_work_root_that_others_can_exchange_is_refused(run_as):
    ada = pwd.getpwnam(ADA).pw_uid
    theirs = run_as.root / "theirs"
    (theirs / "work").mkdir(parents=True)
    os.chown(theirs, ada, ada)
    run_as.configure(work=theirs / "work")
    assert refused(run_as.run("id"), f"{theirs} must belong to root")
    link = run_as.root / "link"
    link.symlink_to("/etc")
    run_as.configure(work=link)
    assert refused(run_as.run("id"), "cannot open")
    run_as.configure(work=run_as.root / "missing")
    assert refused(run_as.run("id"), "cannot open")
    # Another user's directory, a link or a file takes the place of the user's directory.
    other = run_as.root / "other"
    other.mkdir()
    run_as.configure(work=other)
    place = other / ADA
    place.mkdir()
    os.chown(place, pwd.getpwnam(BOB).pw_uid, 0)
    assert refused(run_as.run("id"), "belongs to somebody else")
    # A directory of root's that is not one that the program has made.
    os.chown(place, 0, 0)
    assert refused(run_as.run("id"), "belongs to somebody else")
    assert place.stat().st_uid == 0
    # A call that was cut short has left this.
    place.chmod(0o700)
    assert run_as.run("true").returncode == 0
    assert place.stat().st_uid == ada
    place.rmdir()
    place.symlink_to("/etc")
    assert refused(run_as.run("id"), "cannot open the work directory")
    assert pathlib.Path("/etc").stat().st_uid == 0
    place.unlink()
    place.write_text("")
    assert refused(run_as.run("id"), "cannot open the work directory")


def test_there_is_no_way_back_to_root_or_to_the_caller(run_as):
    setuid = run_as.root / "setuid-id"
    shutil.copy("/usr/bin/id", setuid)
    setuid.chmod(0o4755)
    agent = pwd.getpwnam(AGENT).pw_uid
    script = f"""
import os, sys
for call in (lambda: os.setuid(0), lambda: os.seteuid(0), lambda: os.setresuid(-1, 0, -1), lambda: os.setgid(0),
             lambda: os.setuid({agent}), lambda: os.setgroups([0]), lambda: os.kill(os.getppid(), 9),
             lambda: open('/proc/%d/environ' % os.getppid()), lambda: os.listdir('/proc/%d/fd' % os.getppid())):
    try:
        call()
    except OSError:
        continue
    sys.exit('it could')
os.execv('{setuid}', ['id', '-u'])
"""
    done = run_as.run("/usr/bin/python3", "-c", script)
    assert (done.returncode, done.stdout.strip()) == (0, str(pwd.getpwnam(ADA).pw_uid)), done


def test_the_directory_and_the_program_are_looked_for_as_the_user(run_as):
    secret = run_as.root / "secret"
    secret.mkdir(mode=0o700)
    shutil.copy("/usr/bin/id", secret / "id")
    assert refused(run_as.run("id", directory=str(secret)), "errno 13 directory")
    assert refused(run_as.run(str(secret / "id")), "errno 13 program")
    assert refused(run_as.run("no-such-program"), "errno 2 program")
    # A link of the user's own leads no further.
    link = run_as.work / ADA / "link"
    assert run_as.run("ln", "-s", str(secret), str(link)).returncode == 0
    assert refused(run_as.run("id", directory=str(link)), "errno 13 directory")
    assert refused(run_as.call("run", ADA, "relative", "id"), "usage")
    assert refused(run_as.call("run", ADA, "/"), "usage")
    assert refused(run_as.call("frob"), "usage")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_give_the_program_none_of_its_own(run_as, closed):
    answer = run_as.work / ADA / "descriptors"
    answer.unlink(missing_ok=True)
    run_as.run("true")
    subprocess.run(as_user(AGENT, "sh", "-c", f'exec "$@" {closed}', "sh", run_as.helper, "run", ADA, "/", "sh", "-c",
                           f"ls -l /proc/self/fd > {answer}; echo x; echo y >&2"), check=False, cwd="/",
                   capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    before = CONFIG.read_text()
    if answer.exists():
        assert not any(word in answer.read_text() for word in ("run-as.conf", "passwd", "shadow", "socket", str(BOB)))
    assert CONFIG.read_text() == before
    assert "muster-run-as" not in pathlib.Path("/etc/passwd").read_text()


def test_other_descriptors_of_the_caller_do_not_reach_the_program(run_as):
    with open("/etc/shadow", encoding="utf-8") as shadow:
        os.set_inheritable(shadow.fileno(), True)
        done = run_as.run("sh", "-c", f"cat <&{shadow.fileno()}", pass_fds=(shadow.fileno(),))
    assert done.returncode != 0 and "root:" not in done.stdout


def test_the_end_of_the_program_is_the_end_of_all_that_it_has_left(run_as):
    pids = run_as.work / ADA / "pids"
    stubborn = ("import os, signal, time\n"
                "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "for _ in range(2):\n"
                "    if os.fork(): os._exit(0)\n"
                "    os.setsid()\n"
                f"open('{pids}', 'w').write(str(os.getpid()))\n"
                "os.environ.clear()\n"
                "time.sleep(1000)\n")
    done = run_as.run("sh", "-c", f"rm -f {pids}; python3 -c \"$0\"; while [ ! -s {pids} ]; do sleep 0.05; done; exit 7", stubborn)
    assert done.returncode == 7, done
    assert not pathlib.Path("/proc", pids.read_text()).exists()


def test_the_ends_of_programs_are_told(run_as):
    assert run_as.run("sh", "-c", "exit 9").returncode == 9
    assert run_as.run("sh", "-c", "kill -KILL $$").returncode == 128 + 9
    assert run_as.call("check").stdout == f"{run_as.work}\n"
    assert run_as.call("check", ADA).returncode == 0


def supervised(run_as, environment, *program):
    """Runs the program with a socket at descriptor 3; returns our end of it and the process."""
    ours, theirs = socket.socketpair()
    # The shell puts it where it belongs.
    words = as_user(AGENT, "bash", "-c", f'exec "$@" 3<&{theirs.fileno()}', "sh", run_as.helper, "--supervised", "run", ADA, "/",
                    *program)
    process = subprocess.Popen(words, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, pass_fds=(theirs.fileno(),))
    theirs.close()
    ours.settimeout(60)
    ours.sendall(struct.pack("=I", len(environment)) + environment)
    return ours, process


def told(ours):
    """All that is told until it ends."""
    words = b""
    while part := ours.recv(4096):
        words += part
    return words.decode().splitlines()


@pytest.mark.parametrize("environment, program, lines", [
    (b"", ["true"], ["ended 0"]), (b"A=1\0=\0B\0", ["sh", "-c", 'exit "$A"'], ["ended 256"]),
    (b"A=" + b"x" * 100000 + b"\0", ["sh", "-c", 'exit ${#A}'], [f"ended {100000 % 256 << 8}"]),
    (b"", ["no-such-program"], ["failed 2 program"])])
def test_a_supervisor_hears_how_it_went(run_as, environment, program, lines):
    ours, process = supervised(run_as, environment, *program)
    with ours, process:
        said = told(ours)
    assert all(line in said for line in lines), said


@pytest.mark.parametrize("sent", [b"", struct.pack("=I", 10), struct.pack("=I", 10) + b"A=1\0", struct.pack("=I", 1 << 30)])
def test_half_an_environment_starts_nothing(run_as, sent):
    ours, theirs = socket.socketpair()
    words = as_user(AGENT, "bash", "-c", f'exec "$@" 3<&{theirs.fileno()}', "sh", run_as.helper, "--supervised", "run", ADA, "/",
                    "true")
    ours.sendall(sent)
    ours.shutdown(socket.SHUT_WR)
    with ours, theirs:
        done = subprocess.run(words, cwd="/", pass_fds=(theirs.fileno(),), capture_output=True, text=True, check=False,
                              timeout=60)
    assert refused(done, "environment")


def test_the_end_of_the_supervisor_is_the_end_of_the_run(run_as):
    ours, process = supervised(run_as, b"", "sh", "-c", "trap '' TERM; setsid sleep 1000 & echo up; wait")
    with process:
        assert process.stdout.readline() == b"up\n"
        ours.close()
        assert process.wait(60) == 128 + 9


def test_no_session_no_program(run_as):
    subprocess.run(["usermod", "--expiredate", "1970-01-02", BOB], check=True)
    try:
        assert refused(run_as.run("id", user=BOB), "PAM")
        assert refused(run_as.call("check", BOB), "PAM")
    finally:
        subprocess.run(["usermod", "--expiredate", "", BOB], check=True)
    assert run_as.run("true", user=BOB).returncode == 0


def test_limits_of_the_session_hold(run_as):
    limits = pathlib.Path("/etc/security/limits.d/muster-it.conf")
    limits.write_text(f"{ADA} hard nofile 321\n{ADA} soft nofile 123\n")
    try:
        assert run_as.run("sh", "-c", "ulimit -Sn; ulimit -Hn").stdout.split() == ["123", "321"]
        assert run_as.run("sh", "-c", "ulimit -Hn", user=BOB).stdout.strip() != "321"
    finally:
        limits.unlink()

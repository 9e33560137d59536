#include "tests/support/pyxis/container.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "tests/support/pyxis/spank.h"

namespace muster::pyxis {
namespace {

namespace fs = std::filesystem;

// The following code runs in the child, between fork and exec: it writes failures to stderr, which
// is the log, and ends.
[[noreturn]] void Fail(const std::string& what) {
  dprintf(STDERR_FILENO, "[ERROR] %s: %s\n", what.c_str(), strerror(errno));
  _exit(1);
}

void WriteTo(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    Fail(path);
  close(fd);
}

// One id each is mapped, which needs no privilege: the user's own, to itself or to root.
void EnterNamespaces(const ContainerPlan& plan) {
  // Otherwise the files of /proc/self belong to root since the change of user.
  prctl(PR_SET_DUMPABLE, 1);
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) Fail("unshare");
  const auto map = [&](uid_t id) {
    return std::to_string(plan.remap_root ? 0 : id) + " " + std::to_string(id) + " 1";
  };
  WriteTo("/proc/self/setgroups", "deny");
  WriteTo("/proc/self/uid_map", map(plan.user.uid));
  WriteTo("/proc/self/gid_map", map(plan.user.gid));
  if (mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) Fail("mount --make-rslave /");
}

// Returns the flags of a file system that a user namespace may not take away when it mounts it
// again.
unsigned long LockedFlags(const std::string& path) {
  struct statvfs at = {};
  if (statvfs(path.c_str(), &at) != 0) return 0;
  unsigned long flags = 0;
  if (at.f_flag & ST_NOSUID) flags |= MS_NOSUID;
  if (at.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (at.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (at.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (at.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
  if (at.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  return flags;
}

void MakeReadOnly(const std::string& path) {
  if (mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | LockedFlags(path),
            nullptr) != 0) {
    Fail("mount -o remount,ro " + path);
  }
}

void MakeTarget(const std::string& target, bool directory) {
  std::error_code ignored;  // the mount will tell
  fs::create_directories(directory ? fs::path(target) : fs::path(target).parent_path(), ignored);
  if (!directory && !fs::exists(target, ignored)) std::ofstream(target).flush();
}

void Bind(const std::string& source, const std::string& target) {
  std::error_code ignored;
  MakeTarget(target, fs::is_directory(source, ignored));
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    Fail("mount --rbind " + source + " " + target);
}

void Tmpfs(const std::string& target, const char* options) {
  MakeTarget(target, true);
  if (mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
    Fail("mount -t tmpfs " + target);
}

void MountOne(const ContainerPlan& plan, const Mount& wanted) {
  const std::string target =
      plan.rootfs + (wanted.target.starts_with('/') ? "" : "/") + wanted.target;
  if (wanted.source == "umount") {
    if (umount2(target.c_str(), MNT_DETACH) != 0) Fail("umount " + target);
    return;
  }
  if (wanted.source == "tmpfs") {
    Tmpfs(target, "mode=755");
  } else {
    Bind(wanted.source, target);
  }
  if (std::find(wanted.flags.begin(), wanted.flags.end(), "ro") != wanted.flags.end())
    MakeReadOnly(target);
}

void MountAll(const ContainerPlan& plan) {
  if (mount(plan.rootfs.c_str(), plan.rootfs.c_str(), nullptr, MS_BIND, nullptr) != 0)
    Fail("mount --bind " + plan.rootfs);
  for (const char* name : {"/proc", "/sys", "/dev"}) Bind(name, plan.rootfs + name);
  Tmpfs(plan.rootfs + "/tmp", "mode=1777");
  for (const char* name : {"/etc/resolv.conf", "/etc/hosts"}) {
    if (access(name, R_OK) == 0) Bind(name, plan.rootfs + name);
  }
  if (!plan.home.empty()) Bind(plan.home, plan.rootfs + (plan.remap_root ? "/root" : plan.home));
  for (const Mount& wanted : plan.mounts) MountOne(plan, wanted);
  if (!plan.writable) MakeReadOnly(plan.rootfs);
}

void SwitchRoot(const std::string& rootfs) {
  // The old root lands on top of the new one, and is then taken off.
  if (chdir(rootfs.c_str()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
      umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) {
    Fail("pivot_root " + rootfs);
  }
}

void Set(Environment* environment, const std::string& name, const std::string& value) {
  for (auto& entry : *environment) {
    if (entry.first != name) continue;
    entry.second = value;
    return;
  }
  environment->emplace_back(name, value);
}

// Does the work of enroot's hook for images that say they have PyTorch: sets names that torch
// reads, unless the image or --container-env has them. The job's own values are not asked, and
// lose.
void SetTorchVariables(Environment* container, const Environment& enroot) {
  const auto value_of = [](const Environment& in, std::string_view name) {
    for (const auto& entry : in) {
      if (entry.first == name) return entry.second;
    }
    return std::string();
  };
  if (value_of(*container, "PYTORCH_VERSION").empty()) return;
  const std::string job = value_of(enroot, "SLURM_JOB_ID");
  const std::string tasks = value_of(enroot, "SLURM_NTASKS");
  const std::string nodes = value_of(enroot, "SLURM_STEP_NODELIST");
  const auto set = [&](const char* name, const std::string& value) {
    if (value_of(*container, name).empty() && !value.empty()) Set(container, name, value);
  };
  set("WORLD_SIZE", tasks);
  if (!job.empty()) set("MASTER_PORT", std::to_string(std::stoul(job) % 4536 + 61000));
  // A list in brackets begins with the first node, too; Slurm's own expansion is not at hand here.
  const size_t bracket = nodes.find('[');
  if (bracket == std::string::npos) {
    set("MASTER_ADDR", nodes.substr(0, nodes.find(',')));
  } else {
    const size_t end = nodes.find_first_of(",-]", bracket);
    set("MASTER_ADDR", nodes.substr(0, bracket) + nodes.substr(bracket + 1, end - bracket - 1));
  }
}

// Puts the image's variables over those that enroot was called with, and the job's chosen ones over
// both.
Environment ContainerEnvironment(const ContainerPlan& plan) {
  Environment merged = plan.environment;
  Environment image;
  std::ifstream file("/etc/environment");
  std::string line;
  while (std::getline(file, line)) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos && !line.starts_with('#'))
      Set(&image, line.substr(0, equals), line.substr(equals + 1));
  }
  for (const auto& [name, value] : plan.overrides) Set(&image, name, value);
  SetTorchVariables(&image, plan.environment);
  for (const auto& [name, value] : image) Set(&merged, name, value);
  if (plan.remap_root && !plan.home.empty()) Set(&merged, "HOME", "/root");
  return merged;
}

void RunContainer(const ContainerPlan& plan) {
  // /etc/rc reads this file before it runs the entrypoint.
  if (!plan.entrypoint) std::ofstream(plan.rootfs + "/etc/rc.local") << "exec \"$@\"\n";
  EnterNamespaces(plan);
  MountAll(plan);
  SwitchRoot(plan.rootfs);
  std::vector<std::string> arguments = {"-c", "kill -STOP $$; exit 0"};
  if (access("/etc/rc", R_OK) == 0) arguments.insert(arguments.begin(), {"/etc/rc", "/bin/sh"});
  Exec("/bin/sh", arguments, ContainerEnvironment(plan));
  Fail("/bin/sh");
}

int OpenOf(pid_t pid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

}  // namespace

std::string MissingSource(const ContainerPlan& plan) {
  for (const Mount& wanted : plan.mounts) {
    if (wanted.source == "tmpfs" || wanted.source == "umount") continue;
    if (access(wanted.source.c_str(), F_OK) != 0) return wanted.source;
  }
  return {};
}

pid_t StartContainer(const ContainerPlan& plan, const ChildLog& log) {
  const pid_t pid = ForkAs(plan.user, log, [&] { RunContainer(plan); });
  if (pid < 0) {
    slurm_error("pyxis: failed to start container");
    return -1;
  }
  int status = 0;
  if (waitpid(pid, &status, WUNTRACED) < 0) {
    slurm_error("pyxis: container start error: %s", strerror(errno));
    return -1;
  }
  if (WIFSTOPPED(status)) return pid;
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    slurm_error("pyxis: container start failed with error code: %d", WEXITSTATUS(status));
  } else {
    slurm_error("pyxis: container exited too soon");
  }
  return -1;
}

Environment VariablesOf(pid_t pid) {
  Environment found;
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  std::string entry;
  while (std::getline(file, entry, '\0')) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos)
      found.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return found;
}

bool JoinContainer(pid_t pid, const std::string& workdir) {
  const int user = OpenOf(pid, "ns/user");
  const int mounts = OpenOf(pid, "ns/mnt");
  const int directory = OpenOf(pid, "cwd");
  const char* problem = nullptr;
  if (user < 0 || mounts < 0 || directory < 0) {
    problem = "get container attributes";
  } else if (setns(user, CLONE_NEWUSER) != 0) {
    problem = "join user namespace";
  } else if (setns(mounts, CLONE_NEWNS) != 0) {
    problem = "join mount namespace";
  } else if (!workdir.empty() && chdir(workdir.c_str()) != 0) {
    slurm_error("pyxis: couldn't chdir to %s: %s", workdir.c_str(), strerror(errno));
    return false;
  } else if (workdir.empty() && fchdir(directory) != 0) {
    problem = "chdir to container cwd";
  }
  if (problem != nullptr) slurm_error("pyxis: couldn't %s: %s", problem, strerror(errno));
  for (const int fd : {user, mounts, directory}) {
    if (fd >= 0) close(fd);
  }
  return problem == nullptr;
}

}  // namespace muster::pyxis

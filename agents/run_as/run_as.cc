// muster-run-as: runs one program as another user, for the agent of machines. The only program with
// privileges: root's, mode 4750. It trusts its caller's user id alone; README.md has the design.
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <security/pam_appl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

const std::string kFile = "/etc/muster/run-as.conf";
constexpr int kRefused = 125, kTryAgain = 75;  // exit codes
constexpr uid_t kLeastUid = 1000;              // whatever the file says
const std::vector<unsigned> kNobodies = {65534, 65535, ~0U};
constexpr int kSupervisor = 3;  // the descriptor of the supervisor's socket
constexpr uint32_t kMaxEnvironmentBytes = 4 << 20;
constexpr size_t kMaxLine = 4096;  // of the file, in bytes
constexpr int kPassedOn[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};

bool is_supervised = false;

// Tells the supervisor a line; it may be gone.
void Tell(const std::string& line) {
  if (is_supervised) send(kSupervisor, (line + "\n").c_str(), line.size() + 1, MSG_NOSIGNAL);
}

[[noreturn]] void Refuse(const std::string& why, int code = kRefused) {
  dprintf(STDERR_FILENO, "muster-run-as: %s\n", why.c_str());
  Tell("refused " + why);
  _exit(code);
}

void Must(bool done, const std::string& what) {
  if (!done) Refuse("cannot " + what + ": " + strerror(errno));
}

struct Config {
  std::vector<unsigned> callers, users, denied, groups;
  unsigned minimum_uid = kLeastUid;
  std::string work_root;
};

// Opens what only root can change: itself, and all directories above. Follows no link.
int OpenRoots(const std::string& path, int flags) {
  const size_t slash = path.rfind('/');
  if (slash > 0) close(OpenRoots(path.substr(0, slash), O_PATH | O_DIRECTORY));
  const int fd = open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info {};
  Must(fd >= 0 && fstat(fd, &info) == 0, "open " + path);
  if (info.st_uid != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    Refuse(path + " must belong to root, and nobody else may write to it");
  return fd;
}

void TakeSetting(const std::string& key, const std::string& value, Config* config) {
  const auto number = static_cast<unsigned>(atoi(value.c_str()));
  std::vector<unsigned>* list = key == "caller"       ? &config->callers
                                : key == "allow-user" ? &config->users
                                : key == "deny-user"  ? &config->denied
                                                      : nullptr;
  const passwd* user = list != nullptr ? getpwnam(value.c_str()) : nullptr;
  const group* group = key == "allow-group" ? getgrnam(value.c_str()) : nullptr;
  if (user != nullptr) return list->push_back(user->pw_uid);
  if (group != nullptr) return config->groups.push_back(group->gr_gid);
  if (key == "minimum-uid" && number >= kLeastUid && std::to_string(number) == value) {
    config->minimum_uid = number;
  } else if (key == "work-root" && value.starts_with('/') && !value.ends_with('/')) {
    config->work_root = value;
  } else {
    Refuse(kFile + ": \"" + key + " " + value + "\" is no setting, or its value is not known here");
  }
}

Config ReadConfig() {
  FILE* file = fdopen(OpenRoots(kFile, O_RDONLY), "r");
  Config config;
  char line[kMaxLine], key[kMaxLine], value[kMaxLine], more[kMaxLine];
  while (file != nullptr && fgets(line, sizeof line, file) != nullptr) {
    const int words = sscanf(line, "%s %s %s", key, value, more);
    if (words > 0 && key[0] != '#') TakeSetting(key, words == 2 ? value : "", &config);
  }
  if (file == nullptr || ferror(file) != 0 || config.work_root.empty())
    Refuse(kFile + " has no work-root, or cannot be read");
  return config;
}

struct User {
  std::string name, home, shell;
  uid_t uid;
  gid_t gid;
};

bool Has(const std::vector<unsigned>& all, unsigned one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

User FindUser(const std::string& name, const Config& config) {
  const passwd* found = getpwnam(name.c_str());
  if (found == nullptr) Refuse("there is no user \"" + name + "\" on this machine");
  User user = {found->pw_name, found->pw_dir, found->pw_shell, found->pw_uid, found->pw_gid};
  std::vector<gid_t> groups(NGROUPS_MAX, user.gid);
  int count = NGROUPS_MAX;
  Must(getgrouplist(user.name.c_str(), user.gid, groups.data(), &count) >= 0, "read groups");
  const bool is_in_group = std::any_of(groups.begin(), groups.begin() + count,
                                       [&](gid_t group) { return Has(config.groups, group); });
  std::string why;
  if (!Has(config.users, user.uid) && !is_in_group) why = "is under no allow-user or allow-group";
  if (Has(config.denied, user.uid)) why = "is under deny-user";
  if (user.uid == getuid() || Has(config.callers, user.uid)) why = "is a caller";
  if (user.uid < config.minimum_uid || Has(kNobodies, user.uid) || Has(groups, 0))
    why = "is root, nobody, in root's group, or below minimum-uid";
  if (user.name[0] == '.' || user.name.find('/') != user.name.npos) why = "has no good name";
  if (!why.empty()) Refuse("user \"" + name + "\" " + why + " (" + kFile + ", which is root's)");
  return user;
}

// Makes the user's directory in the work root, where only root can exchange a name.
void MakeWorkDirectory(const User& user, const std::string& work_root) {
  const int root = OpenRoots(work_root, O_RDONLY | O_DIRECTORY);
  Must(mkdirat(root, user.name.c_str(), 0700) == 0 || errno == EEXIST, "make a work directory");
  const int own = openat(root, user.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info {};
  Must(own >= 0 && fstat(own, &info) == 0, "open the work directory of " + user.name);
  const bool is_new = info.st_uid == 0 && (info.st_mode & 0777) == 0700;  // as mkdirat has it
  if (is_new) Must(fchown(own, user.uid, user.gid) == 0, "hand over a work directory");
  if (!is_new && info.st_uid != user.uid)
    Refuse("the work directory of \"" + user.name + "\" belongs to somebody else");
}

// The variables come from the supervisor: their size in 4 bytes, then each with a NUL behind it.
std::string ReadEnvironment() {
  uint32_t size = 0;
  if (!is_supervised) return "";
  if (recv(kSupervisor, &size, sizeof size, MSG_WAITALL) != sizeof size ||
      size > kMaxEnvironmentBytes)
    Refuse("the environment is too long, or did not come");
  std::string text(size, '\0');
  if (size > 0 && recv(kSupervisor, text.data(), size, MSG_WAITALL) != ssize_t{size})
    Refuse("the environment did not come whole");
  return text;
}

// Becomes the user for good: no way back may be open, and the parent has to be there.
bool Become(const User& user, pid_t parent) {
  return setsid() >= 0 && setresgid(user.gid, user.gid, user.gid) == 0 &&
         setresuid(user.uid, user.uid, user.uid) == 0 && setresuid(-1, 0, -1) != 0 &&
         setresgid(-1, 0, -1) != 0 && getuid() == user.uid && geteuid() == user.uid &&
         getgid() == user.gid && getegid() == user.gid &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
         getppid() == parent && close_range(kSupervisor, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

[[noreturn]] void Execute(const User& user, const char* directory, char** words,
                          std::string variables, int trouble, pid_t parent) {
  const sigset_t none = {};
  const char* step = "process";
  if (Become(user, parent)) step = "directory";
  if (*step == 'd' && chdir(directory) == 0) {
    step = "program";
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::string own[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + user.home,
                         "SHELL=" + user.shell, "USER=" + user.name, "LOGNAME=" + user.name};
    for (std::string& variable : own) putenv(variable.data());
    for (char* at = variables.data(); *at != '\0'; at += strlen(at) + 1) putenv(at);
    execvp(words[0], words);
  }
  dprintf(trouble, "%d %s", errno, step);
  _exit(kRefused);
}

// Waits until no process of the run is left; returns the leader's end. Every orphan of the run is a
// child of this process. All are killed once the supervisor has ended or closed the socket; without
// one, once the leader has ended.
int Watch(pid_t leader, int signals, const std::string& children) {
  int end = -1;
  bool is_killing = false;
  while (true) {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) != 0;) {
      if (pid < 0) return end;  // there are no children
      if (pid != leader) continue;
      end = status;
      Tell("ended " + std::to_string(status));
      is_killing = is_killing || !is_supervised;
    }
    if (is_killing) {
      FILE* list = fopen(children.c_str(), "re");
      for (int pid = 0; list != nullptr && fscanf(list, "%d", &pid) == 1;) kill(pid, SIGKILL);
      if (list != nullptr) fclose(list);
    }
    pollfd fds[] = {{signals, POLLIN, 0},
                    {is_supervised && !is_killing ? kSupervisor : -1, POLLIN, 0}};
    poll(fds, 2, is_killing ? 10 : -1);  // ms between two rounds of killing
    if (fds[1].revents != 0) is_killing = true;
    signalfd_siginfo signal{};
    while (read(signals, &signal, sizeof signal) == sizeof signal) {
      // The group is the leader's as long as nobody has reaped that.
      if (signal.ssi_signo != SIGCHLD && end < 0) kill(-leader, static_cast<int>(signal.ssi_signo));
    }
  }
}

// Leaves the caller's signals, descriptors, variables, mask and directory behind.
int Cleanse() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : kPassedOn) sigaddset(&set, number);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  clearenv();
  umask(022);
  const int kept = is_supervised ? kSupervisor + 1 : kSupervisor;
  for (int fd = 0; fd < kept; ++fd)
    Must(fcntl(fd, F_SETFD, fd < kSupervisor ? 0 : FD_CLOEXEC) == 0, "use its descriptors");
  Must(close_range(kept, ~0U, 0) == 0 && chdir("/") == 0, "close descriptors");
  if (geteuid() != 0 || prctl(PR_GET_SECUREBITS) != 0)
    Refuse("it must belong to root with mode 4750, and its caller be without no_new_privs");
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Asks whether the account is good, and opens a session of it.
pam_handle_t* AskPam(const User& user, bool opens) {
  const auto answers = [](int, const pam_message**, pam_response**, void*) { return PAM_CONV_ERR; };
  const pam_conv talk = {answers, nullptr};
  pam_handle_t* pam = nullptr;
  int answer = pam_start("muster-run-as", user.name.c_str(), &talk, &pam);
  if (answer == PAM_SUCCESS) answer = pam_acct_mgmt(pam, PAM_SILENT);
  if (answer == PAM_SUCCESS && opens) answer = pam_setcred(pam, PAM_ESTABLISH_CRED | PAM_SILENT);
  if (answer == PAM_SUCCESS && opens) answer = pam_open_session(pam, PAM_SILENT);
  if (answer != PAM_SUCCESS)
    Refuse("PAM refuses (/etc/pam.d/muster-run-as): " + std::string(pam_strerror(pam, answer)),
           answer == PAM_AUTHINFO_UNAVAIL ? kTryAgain : kRefused);
  return pam;
}

int Run(const User& user, const char* directory, char** words, int signals) {
  std::string variables = ReadEnvironment();
  Must(initgroups(user.name.c_str(), user.gid) == 0, "take the user's groups");
  pam_handle_t* pam = AskPam(user, true);
  const pid_t parent = getpid();
  const std::string children = "/proc/self/task/" + std::to_string(parent) + "/children";
  int trouble[2];
  Must(open(children.c_str(), O_RDONLY | O_CLOEXEC) >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 &&
           signals >= 0 && pipe2(trouble, O_CLOEXEC) == 0,
       "watch processes");
  const pid_t leader = fork();
  if (leader == 0) Execute(user, directory, words, variables, trouble[1], parent);
  Must(leader > 0, "start a process");
  explicit_bzero(variables.data(), variables.size());
  close(trouble[1]);
  char why[32] = "";
  Tell(read(trouble[0], why, sizeof why - 1) > 0 ? std::string("failed ") + why
                                                 : "started " + std::to_string(leader));
  const int end = Watch(leader, signals, children);
  if (*why != '\0') dprintf(STDERR_FILENO, "muster-run-as: %s: errno %s\n", words[0], why);
  pam_close_session(pam, PAM_SILENT);
  pam_setcred(pam, PAM_DELETE_CRED | PAM_SILENT);
  pam_end(pam, PAM_SUCCESS);
  return WIFSIGNALED(end) ? 128 + WTERMSIG(end) : WEXITSTATUS(end);
}

}  // namespace

// check [USER] | [--supervised] run USER DIRECTORY PROGRAM [ARGUMENT]...
int main(int argc, char** argv) {
  is_supervised = argc > 1 && strcmp(argv[1], "--supervised") == 0;
  char** words = argv + (is_supervised ? 2 : 1);
  const int count = argc - (is_supervised ? 2 : 1);
  const int signals = Cleanse();
  const Config config = ReadConfig();
  if (getuid() == 0 || !Has(config.callers, getuid()))
    Refuse("user id " + std::to_string(getuid()) + " is no caller in " + kFile);
  const std::string verb = count > 0 ? words[0] : "";
  if (verb == "check" && count <= 2) {
    if (count == 2) AskPam(FindUser(words[1], config), false);
    return printf("%s\n", config.work_root.c_str()) > 0 ? 0 : kRefused;
  }
  if (verb != "run" || count < 4 || words[2][0] != '/')
    Refuse("usage: muster-run-as run USER DIRECTORY PROGRAM [ARGUMENT]...");
  const User user = FindUser(words[1], config);
  MakeWorkDirectory(user, config.work_root);
  return Run(user, words[2], words + 3, signals);
}

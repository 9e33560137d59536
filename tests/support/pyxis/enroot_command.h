// Runs the enroot command as the job's user, as Pyxis does.
#ifndef MUSTER_TESTS_SUPPORT_PYXIS_ENROOT_COMMAND_H_
#define MUSTER_TESTS_SUPPORT_PYXIS_ENROOT_COMMAND_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace muster::pyxis {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
};

// The output of a child, kept in memory. No bound but the child's own end: it is enroot's log.
class ChildLog {
 public:
  ChildLog();
  ~ChildLog();
  ChildLog(const ChildLog&) = delete;
  ChildLog& operator=(const ChildLog&) = delete;

  int fd() const { return fd_; }
  std::string Text() const;
  // Prints it line by line, behind a heading; as errors or as plain text.
  void Print(bool as_errors) const;

 private:
  int fd_;
};

// Returns the variables of a job that enroot gets to see. ENROOT_DATA_PATH and the like are not
// among them.
Environment VariablesForEnroot(const std::vector<std::string>& job_environment);

// Forks a child of the user whose output goes to the log; it calls `body`, which is to exec, and
// ends with 1 if that returns. -1 if there is no child.
pid_t ForkAs(const User& user, const ChildLog& log, const std::function<void()>& body);

// Replaces the process by the program with just these variables. Returns only if that fails.
void Exec(const std::string& program, const std::vector<std::string>& arguments,
          const Environment& environment);

// Waits for a child; false, and an error is printed, unless it exits with 0.
bool WaitFor(pid_t child);

// Runs `enroot ARGUMENTS...` to its end.
struct EnrootCall {
  User user;
  std::string program;  // enroot's path
  Environment environment;
};
bool RunEnroot(const EnrootCall& call, const std::vector<std::string>& arguments,
               const ChildLog& log);

}  // namespace muster::pyxis

#endif  // MUSTER_TESTS_SUPPORT_PYXIS_ENROOT_COMMAND_H_

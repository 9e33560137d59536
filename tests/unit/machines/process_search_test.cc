#include "agents/machines/process_search.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

// Plays a process that has the words of a run's supervisor, as the user that it names, until it is
// gone.
class LooksLikeASupervisor {
 public:
  LooksLikeASupervisor(const std::string& directory, const std::string& user) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[0], 0);
      close(ends[1]);
      // It reads until the pipe is closed.
      const std::string words =
          "exec -a /x/muster-supervisor cat '" + directory + "' - 2>/dev/null";
      execlp("setpriv", "setpriv", "--reuid", user.c_str(), "--clear-groups", "bash", "-c",
             words.c_str(), nullptr);
      _exit(127);
    }
    close(ends[0]);
    input_ = ends[1];
    const absl::Time deadline = absl::Now() + kPatience;
    while (!Words().starts_with("/x/muster-supervisor") && absl::Now() < deadline) sched_yield();
  }
  ~LooksLikeASupervisor() {
    close(input_);
    waitpid(pid_, nullptr, 0);
  }

 private:
  std::string Words() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/cmdline");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  pid_t pid_ = 0;
  int input_ = -1;
};

TEST(ListSupervisorsTest, TakesNoProcessOfAnotherUserForOne) {
  const LooksLikeASupervisor own("/of/own/run", std::to_string(geteuid()));
  EXPECT_EQ(ListSupervisors().count("/of/own/run"), 1u);
  const LooksLikeASupervisor others("/of/others/run", "65534");
  EXPECT_EQ(ListSupervisors().count("/of/others/run"), 0u) << "takes root";
}

}  // namespace
}  // namespace muster::machines

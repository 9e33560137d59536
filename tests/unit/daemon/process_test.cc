#include "daemon/process.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster {
namespace {

#ifndef __SANITIZE_ADDRESS__
TEST(Process, ItsMemoryIsNotDumped) {
  const pid_t child = fork();
  if (child == 0) {
    ForbidCoreDumps();
    _exit(prctl(PR_GET_DUMPABLE));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace muster

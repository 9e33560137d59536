// Tests the words about a run whose files are gone.
#include "agents/machines/own_run_files.h"

#include <filesystem>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/machines/backend_fixture.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

using OwnRunFilesTest = BackendTest;

TEST_F(OwnRunFilesTest, OfARunThatIsOverAndHasNoFilesItIsSaidHowLongTheyAreKept) {
  StartBackend();
  const std::string runs = std::filesystem::path(RunDir("k-1-1")).parent_path();
  const auto say = [&](const std::string& run_key, absl::Duration keep, const std::string& node) {
    return OpenOwnRunFiles(runs, keep, {.run_key = run_key, .node = node}).status();
  };
  const std::string run_key = Submit(Script("true"));
  AwaitEnd(run_key);
  EXPECT_TRUE(say(run_key, absl::Hours(720), "gpu1").ok()) << "they are still there";
  std::filesystem::remove_all(RunDir(run_key) + "/work");
  EXPECT_THAT(say(run_key, absl::Hours(720), "gpu1").message(), HasSubstr("or none yet"))
      << "the agent still knows the run";
  EXPECT_TRUE(ForgetOne(*backend_, handles_[run_key]).ok());
  handles_.erase(run_key);
  const absl::Time deadline = absl::Now() + kPatience;
  while (Exists(RunDir(run_key) + "/spec") && absl::Now() < deadline)
    absl::SleepFor(absl::Milliseconds(10));
  const absl::Status gone = say(run_key, absl::Hours(720), "gpu1");
  EXPECT_TRUE(absl::IsNotFound(gone));
  EXPECT_THAT(gone.message(), HasSubstr("for 30d (machines.keep_work)"));
  EXPECT_EQ(say(run_key, absl::InfiniteDuration(), "gpu1").message(),
            "the run has no working directory any more");
  EXPECT_THAT(say(run_key, absl::Hours(720), "").message(), HasSubstr("or none yet"))
      << "it has been nowhere, as far as the broker knows";
}

}  // namespace
}  // namespace muster::machines

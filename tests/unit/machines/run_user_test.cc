#include "agents/machines/run_user.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "agents/machines/run_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::machines {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const RunUser kAda = {.name = "ada",
                      .directory = "/work/ada/1-1",
                      .helper = "/bin/muster-run-as",
                      .supervisor = "/bin/muster-supervisor"};

TEST(RunUserTest, ItsWordsHaveTheProgramRunAsTheUser) {
  EXPECT_THAT(kAda.Words({"id", "-u"}, "/home/ada"),
              ElementsAre("/bin/muster-run-as", "run", "ada", "/home/ada", "id", "-u"));
}

TEST(RunUserTest, ItIsReadAsItWasWritten) {
  const std::optional<RunUser> read = RunUser::Decode(kAda.Encode());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->Encode(), kAda.Encode());
  EXPECT_TRUE(read->IsOther());
  EXPECT_FALSE(RunUser().IsOther());
  EXPECT_FALSE(RunUser::Decode(kAda.Encode().substr(0, kAda.Encode().size() - 1)).has_value());
}

// A helper that runs all as this user, and forgets as whom it should.
void Touch(const std::string& path) { std::ofstream file(path); }

class RunAsUserTest : public testing::Test {
 protected:
  RunAsUserTest() {
    std::filesystem::create_directories(directory_);
    std::ofstream(helper_) << "#!/bin/sh\nshift 3\nexec \"$@\"\n";
    chmod(helper_.c_str(), 0700);
    user_ = {.name = "ada", .directory = directory_, .helper = helper_, .supervisor = "/bin/sh"};
  }
  ~RunAsUserTest() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = testing::TempDir() + "muster-run-user-test";
  const std::string helper_ = directory_ + "/helper";
  RunUser user_;
};

TEST_F(RunAsUserTest, TheCodeAndTheBeginningOfTheOutputComeBack) {
  std::string output;
  EXPECT_EQ(RunAsUser(user_, {"-c", "yes | head -c 200000; exit 3"}, &output), 3);
  EXPECT_EQ(output.substr(0, 4), "y\ny\n");
  EXPECT_LT(output.size(), 100'000U);
  EXPECT_EQ(RunAsUser(user_, {"-c", "kill -9 $$"}), -1);
  user_.helper = directory_ + "/missing";
  EXPECT_EQ(RunAsUser(user_, {"-c", "true"}), -1);
}

TEST_F(RunAsUserTest, ACommandThatItsUserHasStoppedIsEnded) {
  std::string output;
  EXPECT_EQ(RunAsUser(user_, {"-c", "echo begun; kill -STOP $$"}, &output, /*input=*/-1,
                      /*limit_ms=*/100),
            -1);
}

TEST_F(RunAsUserTest, SecretsAreRemovedOnceByWhoeverMay) {
  const std::string mark = directory_ + "/" + kUserSecretsFile;
  std::ofstream(helper_) << "#!/bin/sh\nexit 125\n";
  EXPECT_TRUE(RemoveUserSecrets(directory_, user_));
  Touch(mark);
  EXPECT_FALSE(RemoveUserSecrets(directory_, user_));
  EXPECT_TRUE(std::filesystem::exists(mark));
  std::ofstream(helper_) << "#!/bin/sh\n[ \"$5\" = remove-secrets ]\n";
  EXPECT_TRUE(RemoveUserSecrets(directory_, user_));
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(RunAsUserTest, SecretsThatStayAreToldAndRemovedTheNextTime) {
  const RunDirectory run(directory_ + "/a-1-1");
  std::filesystem::create_directories(run.path());
  std::ofstream(run.PathOf(kUserFile)) << user_.Encode();
  Touch(run.PathOf(kUserSecretsFile));
  std::ofstream(helper_) << "#!/bin/sh\nexit 125\n";
  testing::internal::CaptureStdout();
  run.RemoveBookkeeping();
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("secrets_not_removed"), HasSubstr("a-1-1"), HasSubstr(helper_)));
  EXPECT_TRUE(std::filesystem::exists(run.PathOf(kUserSecretsFile)));
  std::ofstream(helper_) << "#!/bin/sh\nexit 0\n";
  run.RemoveBookkeeping();
  EXPECT_FALSE(std::filesystem::exists(run.PathOf(kUserSecretsFile)));
}

TEST_F(RunAsUserTest, ItHasNothingOfThisEnvironmentAndAnEmptyInput) {
  std::string output;
  EXPECT_EQ(RunAsUser(user_, {"-c", "cat; echo ${HOME:-none}"}, &output), 0);
  EXPECT_EQ(output, "none\n");
}

TEST_F(RunAsUserTest, ASecretOfAnyLengthComesByTheInput) {
  // It stands in the place of muster-supervisor: write-secret PATH.
  const std::string supervisor = directory_ + "/supervisor";
  std::ofstream(supervisor) << "#!/bin/sh\n[ \"$1\" = write-secret ] || exit 9\nexec cat >\"$2\"\n";
  chmod(supervisor.c_str(), 0700);
  user_.supervisor = supervisor;
  const std::string value(300'000, 'v');
  ASSERT_EQ(WriteUserSecret(user_, "secret.TOKEN", value), 0);
  std::ifstream written(directory_ + "/secret.TOKEN");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), value);
}

TEST_F(RunAsUserTest, ATroubleWithASecretIsTheErrorOfTheFile) {
  std::ofstream(helper_) << "#!/bin/sh\nexit 28\n";
  EXPECT_EQ(WriteUserSecret(user_, "secret.TOKEN", "v"), ENOSPC);
  std::ofstream(helper_) << "#!/bin/sh\nexit 125\n";
  EXPECT_EQ(WriteUserSecret(user_, "secret.TOKEN", "v"), EPERM);
}

}  // namespace
}  // namespace muster::machines

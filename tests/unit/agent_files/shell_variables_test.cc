#include "agents/files/shell_variables.h"

#include <string>

#include "contract/errors.h"
#include "tests/unit/agent_files/files_fixture.h"

namespace muster::uploads {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

class ShellVariablesTest : public FilesTest {
 protected:
  void Take(const contract::ShellVariables& variables) {
    TakeText(contract::FormatShellFile(variables));
  }
  void TakeText(const std::string& text) { shell().set_file_sha256(source_.Add(text)); }
  v1::ShellEnvironment& shell() {
    return *assignment_.mutable_spec()
                ->mutable_slurm()
                ->mutable_batch_script()
                ->mutable_environment();
  }
  absl::StatusOr<agent::v1::Assignment> Whole() { return WithShellVariables(assignment_, &files_); }

  JobFiles files_{cache_.get()};
  agent::v1::Assignment assignment_;
};

TEST_F(ShellVariablesTest, AJobWithoutThemAsksNobody) {
  source_.SetAway(true);
  EXPECT_TRUE(FetchShellVariables(assignment_.spec(), nullptr)->empty());
  EXPECT_TRUE(Whole()->spec().env().empty());
}

TEST_F(ShellVariablesTest, TheirFileIsFetchedOnce) {
  Take({{"A", "1"}, {"B", "two\nlines"}});
  for (int i = 0; i < 2; ++i) {
    const auto variables = FetchShellVariables(assignment_.spec(), &files_);
    ASSERT_TRUE(variables.ok()) << variables.status();
    EXPECT_THAT(*variables, UnorderedElementsAre(Pair("A", "1"), Pair("B", "two\nlines")));
  }
  EXPECT_EQ(source_.asked().size(), 1u);
}

TEST_F(ShellVariablesTest, ElsewhereTheRunGetsThoseThatMeanSomethingThere) {
  Take({{"LR", "0.1"},
        {"PATH", "/opt/bin"},
        {"LD_LIBRARY_PATH", "/opt/lib"},
        {"BASH_FUNC_module%%", "() { :\n}"},
        {"SLURM_NTASKS", "4"},
        {"WORLD_SIZE", "9"},
        {"BYTES", "\xff"},
        {"MINE", "shell"}});
  (*assignment_.mutable_spec()->mutable_env())["MINE"] = "job";
  const auto whole = Whole();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->spec().env(), UnorderedElementsAre(Pair("LR", "0.1"), Pair("MINE", "job")));
}

TEST_F(ShellVariablesTest, ElsewhereTheRunGetsThoseThatWereNamed) {
  Take({{"PATH", "/opt/bin"}, {"LD_LIBRARY_PATH", "/opt/lib"}, {"SLURM_X", "1"}, {"HOME", "/h"}});
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "SLURM_X", "HOME"}) shell().add_named(name);
  const auto whole = Whole();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->spec().env(),
              UnorderedElementsAre(Pair("PATH", "/opt/bin"), Pair("HOME", "/h")));
}

TEST_F(ShellVariablesTest, WithoutTheirFileTheJobIsNotRun) {
  shell().set_file_sha256(Sha256Of("gone"));
  EXPECT_TRUE(absl::IsNotFound(Whole().status())) << Whole().status();
  const auto bad = contract::GetBadRequest(WithShellVariables(assignment_, nullptr).status());
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->field_violations(0).field(), "slurm.batch_script.environment");
  TakeText("no variables");
  EXPECT_TRUE(absl::IsInvalidArgument(Whole().status())) << Whole().status();
}

}  // namespace
}  // namespace muster::uploads

#include "broker/auth/projects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "contract/errors.h"
#include "daemon/sqlite.h"

namespace muster::auth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProjectsTest : public ::testing::Test {
 protected:
  ProjectsTest()
      : directory_(std::filesystem::temp_directory_path() /
                   ("muster-projects-" + std::to_string(getpid()) + "-" +
                    ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Reopen();
  }
  ~ProjectsTest() override {
    projects_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::string path() const { return directory_ / "projects.db"; }
  void Reopen() {
    projects_.reset();
    auto opened = Projects::Open(path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    projects_ = *std::move(opened);
  }
  void Put(const Project& project) {
    const absl::Status status = projects_->Change(
        project.name, [&](const std::optional<Project>&) { return std::optional(project); });
    ASSERT_TRUE(status.ok()) << status;
  }
  static Project Vision() {
    return {.name = "vision",
            .description = "sees \"things\"",
            .limits = {.clusters = {"lab", "cloud"},
                       .pools = {"gpu"},
                       .accounts = {"v1"},
                       .images = {"nvcr.io/nvidia", "/lustre/images"}},
            .members = {{MemberKind::kUser, "ada", Role::kSubmitter},
                        {MemberKind::kUser, "bob", Role::kAdmin},
                        {MemberKind::kGroup, "staff", Role::kViewer}},
            .created_micros = 17,
            .archived_micros = 18};
  }

  const std::filesystem::path directory_;
  std::unique_ptr<Projects> projects_;
};

TEST_F(ProjectsTest, ThereIsDefaultAndEveryNameIsGood) {
  const auto table = projects_->Read();
  ASSERT_NE(table->Find("default"), nullptr);
  EXPECT_TRUE(table->is_open());
  EXPECT_EQ(table->Find("vision"), nullptr);
  EXPECT_TRUE(table->places()->empty());
}

TEST_F(ProjectsTest, WhatWasChangedIsThereAfterARestart) {
  Put(Vision());
  for (int i = 0; i < 2; ++i) {
    const auto table = projects_->Read();
    EXPECT_FALSE(table->is_open());
    ASSERT_NE(table->Find("vision"), nullptr);
    EXPECT_EQ(*table->Find("vision"), Vision());
    Reopen();
  }
  Project less = Vision();
  less.members.pop_back();
  less.limits.images.clear();
  Put(less);
  Reopen();
  EXPECT_EQ(*projects_->Read()->Find("vision"), less) << "and nothing of what it was before";
}

TEST_F(ProjectsTest, ATableThatWasReadStaysAsItIs) {
  const auto before = projects_->Read();
  Put(Vision());
  EXPECT_EQ(before->Find("vision"), nullptr);
}

TEST_F(ProjectsTest, AProjectGoesWithAllThatItHad) {
  Put(Vision());
  ASSERT_TRUE(
      projects_
          ->Change("vision", [](const std::optional<Project>&) { return std::optional<Project>(); })
          .ok());
  Put({.name = "vision", .created_micros = 20});
  Reopen();
  EXPECT_THAT(projects_->Read()->Find("vision")->members, IsEmpty());
  EXPECT_THAT(projects_->Read()->Find("vision")->limits.clusters, IsEmpty());
}

TEST_F(ProjectsTest, AnEditThatFailsChangesNothing) {
  Put(Vision());
  const absl::Status status = projects_->Change(
      "vision", [](const std::optional<Project>&) -> absl::StatusOr<std::optional<Project>> {
        return absl::NotFoundError("no");
      });
  EXPECT_TRUE(absl::IsNotFound(status));
  Reopen();
  EXPECT_EQ(*projects_->Read()->Find("vision"), Vision());
}

TEST_F(ProjectsTest, UsersAndTheirGroupsAreMembers) {
  Put(Vision());
  Put({.name = "speech", .members = {{MemberKind::kGroup, "ada", Role::kAdmin}}});
  const auto table = projects_->Read();
  EXPECT_THAT(table->MembershipsOf("ada", {}), ElementsAre(Membership{"vision", Role::kSubmitter}))
      << "a group of the same name is another member";
  EXPECT_THAT(
      table->MembershipsOf("ada", {"ada", "staff", "others"}),
      ElementsAre(Membership{"speech", Role::kAdmin, "ada"}, Membership{"vision", Role::kSubmitter},
                  Membership{"vision", Role::kViewer, "staff"}));
  EXPECT_THAT(table->MembershipsOf("staff", {}), IsEmpty());
}

TEST_F(ProjectsTest, PlacementIsToldOfLimitsAlone) {
  Put(Vision());
  Put({.name = "speech"});
  const auto places = projects_->Read()->places();
  ASSERT_EQ(places->size(), 1u);
  const contract::PlaceLimit& place = places->at("vision");
  EXPECT_THAT(place.clusters, ElementsAre("lab", "cloud"));
  EXPECT_THAT(place.pools, ElementsAre("gpu"));
  EXPECT_TRUE(place.needs_account);
}

TEST_F(ProjectsTest, ThereIsAMost) {
  projects_.reset();
  {
    const auto database = Database::Open(path(), SQLITE_OPEN_READWRITE, {});
    const std::string fill =
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < " +
        std::to_string(kMaxProjects) + ") INSERT INTO project SELECT 'p' || i, '', 1, 0 FROM n";
    ASSERT_TRUE((*database)->Execute(fill).ok());
  }
  Reopen();
  const Project one_more{.name = "one-more"};
  const auto add = [&](const std::optional<Project>&) { return std::optional<Project>(one_more); };
  const absl::Status status = projects_->Change("one-more", add);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(contract::GetErrorInfo(status)->reason(), "TOO_MANY_PROJECTS");
  Put({.name = "p2", .description = "those that there are can be changed"});
}

TEST_F(ProjectsTest, TheFileIsForItsOwnerAlone) {
  struct stat file {};
  ASSERT_EQ(stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(ProjectsTest, AFileOfANewerReleaseIsRefused) {
  projects_.reset();
  {
    const auto database = Database::Open(path(), SQLITE_OPEN_READWRITE, {});
    ASSERT_TRUE((*database)->Execute("PRAGMA user_version = 3").ok());
  }
  const absl::Status status = Projects::Open(path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("start a newer release"));
}

}  // namespace
}  // namespace muster::auth

#include "contract/storage_uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "contract/errors.h"

namespace muster::contract {
namespace {

using testing::HasSubstr;
using Kind = StorageUri::Kind;

constexpr std::string_view kField = "inputs[0].uri";

ClusterStorage Remote() {
  ClusterStorage storage;
  storage.cluster = "polar";
  storage.roots = {{"lustre", "/lustre"}, {"home", "/home/ann/"}, {"fast", "/mnt/nvme"}};
  return storage;
}

ClusterStorage RemoteWithoutRoots() {
  ClusterStorage storage;
  storage.cluster = "polar";
  return storage;
}

ClusterStorage Local() {
  ClusterStorage storage;
  storage.cluster = "desk";
  storage.is_remote = false;
  storage.relative_to = "/home/ann/work";
  return storage;
}

void ExpectRefused(std::string_view text, const ClusterStorage& storage, std::string_view words) {
  const absl::Status status = ResolveStorageUri(kField, text, storage).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(words))) << text;
  const auto bad = GetBadRequest(status);
  ASSERT_TRUE(bad.has_value()) << text;
  EXPECT_EQ(bad->field_violations(0).field(), kField);
}

TEST(ParseStorageUri, ReadsEveryForm) {
  const struct {
    const char* text;
    Kind kind;
    const char* path;
  } cases[] = {
      {"lustre:///fsw/data", Kind::kLustre, "/fsw/data"},
      {"LUSTRE:////fsw//./data/", Kind::kLustre, "/fsw/data"},
      {"slurm://home/data", Kind::kSlurm, "home/data"},
      {"slurm:///fsw/data", Kind::kSlurm, "/fsw/data"},
      {"slurm://None/fsw/data", Kind::kSlurm, "/fsw/data"},
      {"file:///data", Kind::kFile, "/data"},
      {"local:///data", Kind::kFile, "/data"},
      {"/data/a b%20c", Kind::kAbsolute, "/data/a b%20c"},
      {"/", Kind::kAbsolute, "/"},
      {"data/train", Kind::kRelative, "data/train"},
      {"./data", Kind::kRelative, "data"},
      {".", Kind::kRelative, "."},
      {"a/b://c", Kind::kRelative, "a/b:/c"},
      {"/data/..hidden/x..", Kind::kAbsolute, "/data/..hidden/x.."},
  };
  for (const auto& c : cases) {
    const auto uri = ParseStorageUri(kField, c.text);
    ASSERT_TRUE(uri.ok()) << uri.status();
    EXPECT_EQ(uri->kind, c.kind) << c.text;
    EXPECT_EQ(uri->path, c.path) << c.text;
  }
}

TEST(ResolveStorageUri, GivesThePathOnTheCluster) {
  const struct {
    const char* text;
    ClusterStorage storage;
    const char* path;
  } cases[] = {
      {"lustre:///lustre/fsw/data", Remote(), "/lustre/fsw/data"},
      {"lustre:///fsw/data", RemoteWithoutRoots(), "/fsw/data"},
      {"slurm://home/data", Remote(), "/home/ann/data"},
      {"slurm://fast", Remote(), "/mnt/nvme"},
      {"slurm://lustre/fsw", Remote(), "/lustre/fsw"},
      {"slurm:///mnt/nvme/x", Remote(), "/mnt/nvme/x"},
      {"slurm://None/lustre/x", Remote(), "/lustre/x"},
      {"slurm://lustre/fsw", RemoteWithoutRoots(), "/lustre/fsw"},
      {"/lustre/data", Remote(), "/lustre/data"},
      {"/data", Local(), "/data"},
      {"file:///data", Local(), "/data"},
      {"data/x", Local(), "/home/ann/work/data/x"},
  };
  for (const auto& c : cases) {
    const auto path = ResolveStorageUri(kField, c.text, c.storage);
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(*path, c.path) << c.text;
  }
}

TEST(ResolveStorageUri, WhatIsOnTheUsersMachineIsRefusedForARemoteCluster) {
  ExpectRefused("file:///data", Remote(), "write lustre:///data if that is its path there");
  ExpectRefused("file:///lustre/data", Remote(), "cluster polar does not see");
  ExpectRefused("data/train", Remote(), "relative path");
  ExpectRefused("/lustre//data", RemoteWithoutRoots(), "write lustre:///lustre/data if that is");
}

TEST(ResolveStorageUri, NothingLeavesTheRoots) {
  for (const char* text :
       {"lustre:///etc/passwd", "lustre:///lustre2/x", "lustre:///", "slurm:///home/bob",
        "slurm://nosuch/x", "slurm:///mnt/nvme2", "/home/bob/data"}) {
    ExpectRefused(text, Remote(), "use a path in fast (/mnt/nvme), home (/home/ann/)");
  }
  for (const char* text : {"lustre:///lustre/../etc", "slurm://home/../bob", "slurm://..",
                           "/lustre/..", "../x", "file:///a/.."}) {
    ExpectRefused(text, Remote(), "holds \"..\"");
  }
}

TEST(ParseStorageUri, ErrorsHaveTheRemedy) {
  ExpectRefused("", Remote(), "names no data");
  ExpectRefused("s3://bucket/x", Remote(), "scheme \"s3\"");
  ExpectRefused("lustre://fsw/x", Remote(), "write lustre:///fsw/x");
  ExpectRefused("slurm://", Remote(), "slurm://ROOT/path");
  ExpectRefused("/lustre/a\nb", Remote(), "control characters");
  ExpectRefused("/" + std::string(5000, 'x'), Remote(), "4095");
}

TEST(ValidateClusterStorage, NamesTheBadRoot) {
  EXPECT_TRUE(ValidateClusterStorage(Remote()).ok());
  EXPECT_TRUE(ValidateClusterStorage(Local()).ok());
  const std::pair<const char*, const char*> bad[] = {{"", "/a"}, {"a/b", "/a"}, {"..", "/a"},
                                                     {"a", ""},  {"a", "rel"},  {"a", "/x/../y"}};
  for (const auto& [name, path] : bad) {
    ClusterStorage storage;
    storage.roots = {{name, path}};
    EXPECT_THAT(std::string(ValidateClusterStorage(storage).message()), HasSubstr("roots["));
  }
  ClusterStorage storage;
  storage.relative_to = "work";
  EXPECT_THAT(std::string(ValidateClusterStorage(storage).message()), HasSubstr("relative_to"));
}

// ---- random texts

rc::Gen<std::string> AnyUri() {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{
      "lustre://", "slurm://", "file://", "/", "/", "..", ".", "None", "lustre", "home", "fast",
      "a", "%2e%2e", "\\", " ", "\xff", "://", "nvme"});
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const auto& pieces) {
    std::string text;
    for (const std::string& one : pieces) text += one;
    return text;
  });
}

RC_GTEST_PROP(ResolveStorageUri, NoTextLeadsOutOfTheRoots, ()) {
  const auto path = ResolveStorageUri(kField, *AnyUri(), Remote());
  if (!path.ok()) {
    RC_ASSERT(path.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  const std::string closed = *path + "/";
  RC_ASSERT(closed.starts_with("/lustre/") || closed.starts_with("/home/ann/") ||
            closed.starts_with("/mnt/nvme/"));
  RC_ASSERT(closed.find("/../") == std::string::npos);
  RC_ASSERT(closed.find("//") == std::string::npos);
}

RC_GTEST_PROP(ResolveStorageUri, AResolvedPathStaysAsItIs, ()) {
  const auto path = ResolveStorageUri(kField, *AnyUri(), Remote());
  if (!path.ok()) return;
  RC_ASSERT(*ResolveStorageUri(kField, *path, Remote()) == *path);
  RC_ASSERT(*ResolveStorageUri(kField, "lustre://" + *path, Remote()) == *path);
}

}  // namespace
}  // namespace muster::contract

#include "contract/uploads.h"

#include <string>
#include <string_view>

#include "contract/characters.h"
#include "contract/file_tree.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

// A job file's file_mounts, written by a person; what is more is better one directory higher.
constexpr int kMaxUploads = 64;

}  // namespace

void CheckUploads(const v1::JobSpec& spec, FieldErrors* errors) {
  if (spec.uploads_size() > kMaxUploads) {
    errors->Add("uploads", fmt::format("{} uploads; use at most {}, a directory with all of them",
                                       spec.uploads_size(), kMaxUploads));
  }
  if (spec.uploads_size() > 0 && !spec.working_directory().empty()) {
    errors->Add("working_directory",
                fmt::format("{} is a directory of the cluster, and the job brings files along, "
                            "which go into the run's own directory; leave one of them out",
                            Quoted(spec.working_directory())));
  }
  for (int i = 0; i < spec.uploads_size(); ++i) {
    const v1::Upload& upload = spec.uploads(i);
    if (!IsSha256(upload.tree_sha256())) {
      errors->Add(fmt::format("uploads[{}].tree_sha256", i),
                  fmt::format("{} is no SHA-256; use the 64 digits 0-9 and a-f of the tree's",
                              Quoted(upload.tree_sha256())));
    }
    const std::string_view wrong =
        upload.path().empty() ? std::string_view() : WhatIsWrongWithTreePath(upload.path());
    if (!wrong.empty() || !IsUtf8(upload.path()) || HasControlCharacter(upload.path())) {
      errors->Add(fmt::format("uploads[{}].path", i),
                  fmt::format("{} {}; use a path relative to the run's working directory",
                              Quoted(upload.path()),
                              wrong.empty() ? "holds a control character or is not UTF-8" : wrong));
    }
  }
}

}  // namespace muster::contract

#include "clients/cpp/skypilot/ignored.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace muster::client::skypilot {
namespace {

void AddOnce(std::string text, std::vector<std::string>* texts) {
  if (std::find(texts->begin(), texts->end(), text) == texts->end()) {
    texts->push_back(std::move(text));
  }
}

}  // namespace

void Ignored::Field(YamlReader& in, const YamlValue& value) {
  if (value.node.IsNull()) return;
  if (strict_) return in.Problem(value, "means nothing to Muster's clusters; leave it out");
  AddOnce(value.path, &fields_);
}

void Ignored::Remark(YamlReader& in, const YamlValue& value, std::string_view what) {
  if (strict_) return in.Problem(value, what);
  AddOnce(fmt::format("{}: {}", value.path, what), &remarks_);
}

void Ignored::Expect(std::string cluster, v1::ClusterKind kind) {
  expected_.push_back({.job = 0, .cluster = std::move(cluster), .kind = kind});
}

std::vector<ExpectedKind> Ignored::TakeExpected(size_t job) {
  for (ExpectedKind& one : expected_) one.job = job;
  return std::exchange(expected_, {});
}

std::vector<std::string> Ignored::Notes(std::string_view file) const {
  std::vector<std::string> notes;
  if (!fields_.empty()) {
    notes.push_back(fmt::format(
        "{}: ignored, because it means nothing to Muster's clusters: {} (--strict refuses it)",
        file, fmt::join(fields_, ", ")));
  }
  for (const std::string& remark : remarks_) notes.push_back(fmt::format("{}: {}", file, remark));
  return notes;
}

}  // namespace muster::client::skypilot

#include "clients/cpp/skypilot/duplicates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cpp/yaml_reader.h"
#include "contract/characters.h"

namespace muster::client::skypilot {
namespace {

constexpr std::string_view kTags[] = {"str", "int", "float", "bool", "null", "map", "seq"};

bool IsKnownTag(std::string_view tag) {
  constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
  if (tag.empty() || tag == "?" || tag == "!") return true;
  return tag.starts_with(kPrefix) && std::find(std::begin(kTags), std::end(kTags),
                                               tag.substr(kPrefix.size())) != std::end(kTags);
}

// Follows the parser through one document.
class KeyWatcher final : public YAML::EventHandler {
 public:
  KeyWatcher(std::string_view file, std::vector<std::string>* problems)
      : file_(file), problems_(*problems) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override { Value(); }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { Value(); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    Tag(mark, tag);
    if (IsKey()) Key(mark, value);
    Value();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Tag(mark, tag);
    open_.emplace_back();
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Tag(mark, tag);
    open_.emplace_back().is_map = true;
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Collection {
    bool is_map = false;
    bool awaits_key = true;
    std::map<std::string, int> lines;  // of each name
  };

  bool IsKey() const { return !open_.empty() && open_.back().is_map && open_.back().awaits_key; }

  // A key or a value has ended.
  void Value() {
    if (!open_.empty() && open_.back().is_map) {
      open_.back().awaits_key = !open_.back().awaits_key;
    }
  }

  void Close() {
    open_.pop_back();
    Value();
  }

  void Key(const YAML::Mark& mark, const std::string& name) {
    const auto [first, is_new] = open_.back().lines.emplace(name, mark.line + 1);
    if (is_new || problems_.size() >= kMaxYamlProblems) return;
    problems_.push_back(
        fmt::format("{}:{}:{}: {} is given twice, first in line {}; keep one of them", file_,
                    mark.line + 1, mark.column + 1, contract::Quoted(name), first->second));
  }

  void Tag(const YAML::Mark& mark, const std::string& tag) {
    if (IsKnownTag(tag) || problems_.size() >= kMaxYamlProblems) return;
    problems_.push_back(
        fmt::format("{}:{}:{}: the tag {} is not read here; write the value plainly", file_,
                    mark.line + 1, mark.column + 1, contract::Quoted(tag)));
  }

  const std::string file_;
  std::vector<std::string>& problems_;
  std::vector<Collection> open_;
};

}  // namespace

absl::Status CheckDuplicates(std::string_view file, std::string_view text) {
  std::vector<std::string> problems;
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    KeyWatcher watcher(file, &problems);
    while (parser.HandleNextDocument(watcher)) {
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("{}:{}:{}: not valid YAML: {}", file,
                                                  error.mark.line + 1, error.mark.column + 1,
                                                  error.msg));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace muster::client::skypilot
